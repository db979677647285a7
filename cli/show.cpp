// hone show PROBLEM: the candidates that were tried of one problem, or of a model's, failures with their
// causes.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>

#include "cli/command_list.h"
#include "cli/selection.h"
#include "cli/stored.h"
#include "cli/value_types.h"
#include "runtime/system/short_text.h"
#include "tuner/report/report_text.h"

namespace hone::cli {
namespace {

using tuner::Align;
using tuner::Table;

struct Options {
    Selection selection;
    bool wide = false;
};

/// Everything that is stored of one candidate of a problem on one GPU.
struct Tried {
    StoredTrial last;  ///< what was found last, failures too
    double best_us = 0;
    int trials = 0;
    bool is_winner = false;
    bool ties = false;  ///< with the winner
};

/// Problems, and below them where they were tried.
using Groups = std::map<std::string, std::map<std::string, std::vector<StoredTrial>>>;

std::string problem_text(const cache::Trial& trial) {
    return fmt::format("{} {} {}", trial.key.family, trial.key.static_fields, trial.key.dynamic_fields);
}

bool has_failed(const cache::Trial& trial) { return trial.status != cache::TrialStatus::ok; }

/// A layer's own trials count before those of the layers below it: "user" > "site" > "packaged" happens to be
/// the order of the alphabet backwards.
bool is_later(const StoredTrial& left, const StoredTrial& right) {
    return std::tie(left.layer, left.trial.created_at) >= std::tie(right.layer, right.trial.created_at);
}

/// One entry a candidate, the winner first, then by time, failures last.
std::vector<Tried> folded(const std::vector<StoredTrial>& trials, const StoredRace& race) {
    std::map<std::string, Tried> by_candidate;
    for (const StoredTrial& stored : trials) {
        Tried& tried = by_candidate[stored.trial.candidate];
        if (tried.trials++ == 0 || is_later(stored, tried.last)) tried.last = stored;
        const double us = stored.trial.timing.median_us;
        const bool is_time = !has_failed(stored.trial) && us > 0;
        if (is_time && (tried.best_us == 0 || us < tried.best_us)) tried.best_us = us;
    }
    std::vector<Tried> list;
    for (auto& [candidate, tried] : by_candidate) {
        tried.is_winner = candidate == race.winner.trial.candidate;
        tried.ties =
            !tried.is_winner && std::ranges::find(race.ties.others, candidate, &cache::Trial::candidate) !=
                                    race.ties.others.end();
        list.push_back(std::move(tried));
    }
    std::ranges::stable_sort(list, {}, [](const Tried& tried) {
        return std::tuple(!tried.is_winner, has_failed(tried.last.trial), tried.last.trial.timing.median_us);
    });
    return list;
}

std::string remark_of(const Tried& tried) {
    const cache::Trial& trial = tried.last.trial;
    std::vector<std::string> words;
    if (tried.is_winner) words.emplace_back("winner");
    if (tried.ties) words.emplace_back("tied");
    if (trial.is_default) words.emplace_back("default");
    if (tried.last.layer != "user") words.push_back(tried.last.layer);
    if (has_failed(trial)) words.emplace_back(name(trial.status));
    if (!trial.detail.empty()) words.push_back(trial.detail);
    return fmt::format("{}", fmt::join(words, ", "));
}

struct Column {
    std::string_view title;
    Align align;
    bool is_wide;  ///< shown with --wide alone
    std::string (*text)(const Tried& tried);
};

/// Nothing where it is not known.
std::string clock_text(const Tried& tried) {
    const int mhz = tried.last.trial.timing.sm_clock_mhz;
    return mhz == 0 ? "" : std::to_string(mhz);
}
std::string incumbent_text(const Tried& tried) {
    const double ratio = tried.last.trial.timing.incumbent_ratio;
    return ratio == 0 ? "" : fmt::format("{:.3f}", ratio);
}

const Column columns[] = {
    {"us", Align::right, false,
     [](const Tried& t) { return tuner::format_us(t.last.trial.timing.median_us); }},
    {"p10", Align::right, true, [](const Tried& t) { return tuner::format_us(t.last.trial.timing.p10_us); }},
    {"p90", Align::right, true, [](const Tried& t) { return tuner::format_us(t.last.trial.timing.p90_us); }},
    {"samples", Align::right, true,
     [](const Tried& t) { return std::to_string(t.last.trial.timing.samples); }},
    {"MHz", Align::right, false, clock_text},
    {"of incumbent", Align::right, false, incumbent_text},
    {"best", Align::right, false, [](const Tried& t) { return tuner::format_us(t.best_us); }},
    {"trials", Align::right, false, [](const Tried& t) { return std::to_string(t.trials); }},
    {"regs", Align::right, false,
     [](const Tried& t) { return std::to_string(t.last.trial.resources.registers); }},
    {"shared", Align::right, true,
     [](const Tried& t) { return std::to_string(t.last.trial.resources.shared_bytes); }},
    {"spills", Align::right, false,
     [](const Tried& t) { return std::to_string(t.last.trial.resources.spill_bytes); }},
    {"stage", Align::left, true, [](const Tried& t) { return std::string(name(t.last.trial.stage)); }},
    {"provenance", Align::left, true,
     [](const Tried& t) { return std::string(name(t.last.trial.provenance)); }},
    {"layer", Align::left, true, [](const Tried& t) { return t.last.layer; }},
    {"tried at (UTC)", Align::left, true,
     [](const Tried& t) { return tuner::format_time(t.last.trial.created_at); }},
    {"remark", Align::left, false, remark_of},
    {"candidate", Align::left, false, [](const Tried& t) { return t.last.trial.candidate; }},
};

/// On a page, a column that says nothing of its own takes no room: times that all are the best ones, no
/// spills.
bool is_shown(const Column& column, const std::vector<Tried>& list, bool wide) {
    if (wide || column.is_wide) return wide;
    const auto says_it = [&](const Tried& tried) {
        const std::string text = column.text(tried);
        if (column.title == "best") return text != columns[0].text(tried);
        return !text.empty() && text != "0";
    };
    return std::ranges::any_of(list, says_it);
}

Table table_of(const std::vector<Tried>& list, bool wide) {
    std::vector<Column> shown;
    std::ranges::copy_if(columns, std::back_inserter(shown),
                         [&](const Column& column) { return is_shown(column, list, wide); });
    std::vector<Table::Column> titles;
    for (const Column& column : shown) titles.push_back({std::string(column.title), column.align});
    Table table(titles);
    for (const Tried& tried : list) {
        std::vector<std::string> cells;
        for (const Column& column : shown) cells.push_back(column.text(tried));
        table.add(std::move(cells));
    }
    return table;
}

/// The winner that `hone list` has for this problem in this place; none: an empty one.
StoredRace race_of(const std::vector<StoredTrial>& trials, const std::vector<StoredRace>& races) {
    const cache::Trial& any = trials.front().trial;
    const auto found = std::ranges::find_if(races, [&](const StoredRace& race) {
        const cache::Trial& winner = race.winner.trial;
        return winner.key == any.key && place_of(winner) == place_of(any);
    });
    return found == races.end() ? StoredRace{} : *found;
}

/// The heading of a table: where, and how many could have won as well.
std::string title_of(const std::string& place, const cache::Ties& ties, const tuner::Page& page) {
    std::string title = place;
    if (!ties.others.empty())
        title += ": the winner is tied with " + cache::describe_ties(ties.others.size(), ties.within);
    return tuner::fitted(runtime::escape_controls(title), page.columns);
}

std::string text_of(const Groups& groups, const std::vector<StoredRace>& races, const Options& options,
                    tuner::Page page) {
    if (options.wide) page.columns = 0;
    std::string text;
    for (const auto& [problem, places] : groups) {
        text += (text.empty() ? "" : "\n") + tuner::wrapped(tuner::split_words(problem), page, "    ", "");
        for (const auto& [place, trials] : places) {
            const StoredRace race = race_of(trials, races);
            text += fmt::format("\n{}\n{}", title_of(place, race.ties, page),
                                table_of(folded(trials, race), options.wide).render(page, "  "));
        }
    }
    return text;
}

/// What is stored of the one problem that the words say, or of those of a model that they select.
std::vector<StoredTrial> selected_trials(const Options& options, const cache::Filter& filter,
                                         const Console& console) {
    std::vector<StoredTrial> trials = stored_trials(filter, console);
    Selection selection = options.selection;
    if (!selection.target.names_many()) selection.words.clear();  // the filter has them
    const Selected selected(selection);
    std::erase_if(trials, [&](const StoredTrial& stored) { return !selected.contains(stored.trial); });
    return trials;
}

/// Identities of the trials that tie with their winner.
std::set<std::string> tied_ones(const std::vector<StoredRace>& races) {
    std::set<std::string> tied;
    for (const StoredRace& race : races) {
        for (const cache::Trial& other : race.ties.others) tied.insert(identity(other));
    }
    return tied;
}

Outcome show(const Options& options, const Console& console) {
    const Selection& selection = options.selection;
    if (selection.words.empty() && !selection.target.names_many()) {
        throw Failure::usage("no_target", "give a problem, --model or --captured",
                             "hone show rmsnorm dtype=bf16 hidden=4096 rows=16");
    }
    std::optional<Problem> problem;
    if (!selection.target.names_many()) problem = problem_from_words(selection.words);
    const cache::Filter filter = problem ? filter_of(*problem) : filter_of("");
    Outcome outcome{.data = {{"problem", problem ? Json(to_string(*problem)) : Json(nullptr)},
                             {"trials", Json::array()}}};
    const std::vector<StoredRace> races = stored_races(filter, console);
    const std::set<std::string> tied = tied_ones(races);
    Groups groups;
    for (const StoredTrial& stored : selected_trials(options, filter, console)) {
        Json row = tuner::as_json(stored.trial);
        row["layer"] = stored.layer;
        row["tied"] = tied.contains(identity(stored.trial));
        outcome.data["trials"].push_back(std::move(row));
        groups[problem_text(stored.trial)][place_of(stored.trial)].push_back(stored);
    }
    outcome.text = text_of(groups, races, options, console.page);
    if (groups.empty())
        outcome.text =
            (problem ? to_string(*problem) + "\n" : "") + "nothing is stored: hone list shows all\n";
    return outcome;
}

}  // namespace

Runner declare_show(const Arguments& app) {
    const auto options = std::make_shared<Options>();
    app.add_option("PROBLEM", options->selection.words,
                   "An operator and its fields; with --model those that results must have")
        .type_name(operator_type);
    options->selection.declare_gpu(app);
    options->selection.declare_model(app);
    app.add_flag("--wide", options->wide, "All columns, nothing cut off");
    return [options](const Console& console) { return show(*options, console); };
}

}  // namespace hone::cli
