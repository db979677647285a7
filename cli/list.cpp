// hone list: the winners of every cache layer, by GPU and static problem.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "cli/command_list.h"
#include "cli/compare.h"
#include "cli/devices.h"
#include "cli/selection.h"
#include "cli/stored.h"
#include "cli/value_types.h"
#include "kernel_templates/text.h"
#include "runtime/system/short_text.h"
#include "tuner/report/report_text.h"

namespace hone::cli {
namespace {

using tuner::Align;
using tuner::Table;

struct Options {
    Selection selection;
    bool wide = false;
    bool csv = false;
    std::string compared_with;  ///< a file
};

/// A winner with what is shown of it.
struct Row {
    StoredTrial stored;
    cache::Ties ties;
    std::string trust;
    std::vector<std::pair<std::string, std::string>> sizes;  ///< of `stored`: rows, 16
};

std::vector<Row> rows_of(const Options& options, const Console& console,
                         const std::vector<tuner::DeviceInfo>& devices) {
    Selected selected(options.selection);
    std::vector<StoredRace> races = stored_races(filter_of(""), console);
    for (const StoredRace& race : races) selected.consider(race.winner.trial);
    std::vector<Row> rows;
    for (StoredRace& race : races) {
        if (!selected.contains(race.winner.trial)) continue;
        Row row{.stored = std::move(race.winner), .ties = std::move(race.ties), .trust = {}, .sizes = {}};
        row.trust = trust_here(row.stored.trial, devices);
        const auto sizes = parse_key_values(row.stored.trial.key.dynamic_fields, nullptr);
        for (const KeyValue& size : sizes.value_or(std::vector<KeyValue>()))
            row.sizes.emplace_back(size.key, size.value);
        rows.push_back(std::move(row));
    }
    return rows;
}

/// Numbers by their value.
bool smaller_sizes(const Row& left, const Row& right) {
    const auto less = [](const auto& a, const auto& b) {
        const std::optional<std::int64_t> x = parse_integer(a.second);
        const std::optional<std::int64_t> y = parse_integer(b.second);
        return x && y ? *x < *y : a.second < b.second;
    };
    return std::ranges::lexicographical_compare(left.sizes, right.sizes, less);
}

std::string ties_text(const Row& row) {
    return row.ties.others.empty() ? "-" : cache::describe_ties(row.ties.others.size(), row.ties.within);
}

/// The model's step in which it was chosen.
std::string chain_text(const Row& row) {
    return row.stored.trial.chain.empty() ? "-" : row.stored.trial.chain;
}

/// A column beside sizes, time and winner.
struct Remark {
    std::string title;
    std::string (*text)(const Row& row);
    bool is_titled_in_heading = false;
};
const Remark remarks[] = {
    {"provenance", [](const Row& row) { return std::string(name(row.stored.trial.provenance)); }},
    {"layer", [](const Row& row) { return row.stored.layer; }},
    {"trust here", [](const Row& row) { return row.trust; }},
    {"tied with", ties_text, true},
    {"chosen in", chain_text, true},
};

bool is_column(const Remark& remark, const std::vector<Row>& rows, const Options& options) {
    return options.wide || std::ranges::any_of(rows, [&](const Row& row) {
               return remark.text(row) != remark.text(rows.front());
           });
}

/// What holds for all rows stands in the heading, and is no column.
std::string heading(const std::vector<Row>& rows, const Options& options, const tuner::Page& page) {
    const cache::TuningKey& key = rows.front().stored.trial.key;
    std::vector<std::string> common;
    for (const Remark& remark : remarks) {
        if (!is_column(remark, rows, options) && remark.text(rows.front()) != "-")
            common.push_back((remark.is_titled_in_heading ? remark.title + ' ' : "") +
                             remark.text(rows.front()));
    }
    const std::string text =
        fmt::format("{} {}{}", key.family, key.static_fields,
                    common.empty() ? "" : fmt::format("  ({})", fmt::join(common, ", ")));
    return tuner::wrapped(tuner::split_words(runtime::escape_controls(text)), page, "    ", "");
}

std::string table_of(const std::vector<Row>& rows, const Options& options, const tuner::Page& page) {
    std::vector<Table::Column> columns;
    for (const auto& [name, _] : rows.front().sizes) columns.push_back({name, Align::right});
    columns.push_back({"us", Align::right});
    std::vector<Remark> shown;
    for (const Remark& remark : remarks) {
        if (!is_column(remark, rows, options)) continue;
        columns.push_back({remark.title, Align::right});
        shown.push_back(remark);
    }
    if (options.wide) {
        for (const char* title : {"MHz", "of incumbent", "tuned at (UTC)"})
            columns.push_back({title, Align::right});
    }
    columns.push_back({"winner"});
    Table table(columns);
    for (const Row& row : rows) {
        const cache::Trial& trial = row.stored.trial;
        std::vector<std::string> cells;
        for (const auto& [_, value] : row.sizes) cells.push_back(value);
        cells.push_back(tuner::format_us(trial.timing.median_us));
        for (const Remark& remark : shown) cells.push_back(remark.text(row));
        if (options.wide) {
            const cache::Timing& timing = trial.timing;
            cells.push_back(timing.sm_clock_mhz == 0 ? "-" : std::to_string(timing.sm_clock_mhz));
            cells.push_back(timing.incumbent_ratio == 0 ? "-"
                                                        : fmt::format("{:.3f}", timing.incumbent_ratio));
            cells.push_back(tuner::format_time(trial.created_at));
        }
        cells.push_back(trial.candidate);
        table.add(std::move(cells));
    }
    return table.render(page, "  ");
}

std::string text_of(std::vector<Row> rows, const Options& options, tuner::Page page) {
    if (options.wide) page.columns = 0;
    std::ranges::stable_sort(rows, smaller_sizes);
    std::map<std::string, std::map<std::string, std::vector<Row>>> groups;  // by GPU, by static problem
    for (Row& row : rows) {
        const cache::TuningKey& key = row.stored.trial.key;
        groups[place_of(row.stored.trial)][key.family + ' ' + key.static_fields].push_back(std::move(row));
    }
    std::string text;
    for (const auto& [gpu, problems] : groups) {
        text += tuner::fitted(runtime::escape_controls(gpu), page.columns) + "\n\n";
        for (const auto& [_, group] : problems)
            text += heading(group, options, page) + table_of(group, options, page) + '\n';
    }
    return text;
}

/// As RFC 4180 has it.
std::string quoted(const std::string& cell) {
    if (cell.find_first_of(",\"\r\n") == std::string::npos) return cell;
    std::string text = "\"";
    for (const char c : cell) text += c == '"' ? "\"\"" : std::string(1, c);
    return text + '"';
}

std::string csv_of(const std::vector<Row>& rows) {
    std::string text =
        "gpu,layer,operator,fields,sizes,winner,us,provenance,trust,tuned_at,ties,tied_within,"
        "sm_clock_mhz,incumbent_ratio,chain\r\n";
    for (const Row& row : rows) {
        const cache::Trial& trial = row.stored.trial;
        const std::string cells[] = {place_of(trial),
                                     row.stored.layer,
                                     trial.key.family,
                                     trial.key.static_fields,
                                     trial.key.dynamic_fields,
                                     trial.candidate,
                                     fmt::format("{}", trial.timing.median_us),
                                     std::string(name(trial.provenance)),
                                     row.trust,
                                     tuner::format_time(trial.created_at),
                                     fmt::format("{}", row.ties.others.size()),
                                     fmt::format("{}", row.ties.within),
                                     fmt::format("{}", trial.timing.sm_clock_mhz),
                                     fmt::format("{}", trial.timing.incumbent_ratio),
                                     trial.chain};
        std::vector<std::string> line;
        for (const std::string& cell : cells) line.push_back(quoted(cell));
        text += fmt::format("{}\r\n", fmt::join(line, ","));
    }
    return text;
}

std::string nothing(const Options& options) {
    return options.selection.is_everything() ? "nothing is tuned yet: hone tune MODEL\n"
                                             : "no winner is like that: hone list shows all\n";
}

std::vector<StoredRace> races_of(const std::vector<Row>& rows) {
    std::vector<StoredRace> races;
    for (const Row& row : rows) races.push_back({row.stored, row.ties});
    return races;
}

Outcome list(const Options& options, const Console& console) {
    const std::vector<tuner::DeviceInfo> devices = find_gpus().devices;
    std::vector<Row> rows = rows_of(options, console, devices);
    if (!options.compared_with.empty())
        return compare_with_file(races_of(rows), options.compared_with, options.selection, console);
    Outcome outcome{.data = {{"winners", Json::array()}}};
    for (const Row& row : rows) {
        Json object = tuner::as_json(row.stored.trial);
        object["layer"] = row.stored.layer;
        object["trust"] = devices.empty() ? Json(nullptr) : Json(row.trust);
        tuner::add_ties(row.ties, object);
        outcome.data["winners"].push_back(std::move(object));
    }
    if (options.csv)
        outcome.text = csv_of(rows);
    else
        outcome.text = rows.empty() ? nothing(options) : text_of(std::move(rows), options, console.page);
    return outcome;
}

}  // namespace

Runner declare_list(const Arguments& app) {
    const auto options = std::make_shared<Options>();
    options->selection.declare(app);
    const Argument wide = app.add_flag("--wide", options->wide, "All columns, nothing cut off");
    const Argument csv = app.add_flag("--csv", options->csv, "Comma-separated values, a winner a line");
    csv.excludes(wide);
    app.add_option("--compare", options->compared_with,
                   "Hold the winners against those of another cache or an exported file: the same, tied, "
                   "different")
        .type_name(file_type)
        .excludes(csv);
    return [options](const Console& console) { return list(*options, console); };
}

}  // namespace hone::cli
