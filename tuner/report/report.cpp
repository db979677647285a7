#include "tuner/report/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "tuner/report/report_text.h"

namespace hone::tuner {
namespace {

/// A column for each size of a call, then what came of it; who ties only where somebody does.
Table table_for(const Family& family, bool has_ties) {
    std::vector<Table::Column> columns;
    for (const std::uint8_t field : run_time_fields(family))
        columns.push_back({std::string(family.fields[field].name), Align::right});
    columns.insert(columns.end(), {{"winner", Align::left},
                                   {"us", Align::right},
                                   {"vs default", Align::right},
                                   {"of floor", Align::right},
                                   {"provenance", Align::left}});
    if (has_ties) columns.push_back({"tied with", Align::left});
    return Table(std::move(columns));
}

std::vector<std::string> sizes(const Problem& problem) {
    std::vector<std::string> cells;
    for (const std::uint8_t field : run_time_fields(*problem.family))
        cells.push_back(fmt::format("{}", problem[field]));
    return cells;
}

std::vector<std::string> outcome(const ProblemResult& result, const DeviceTraits& traits) {
    if (!result.winner) {
        const std::string why = result.failure.empty() ? "not reached" : result.failure;
        return {"- " + why, "-", "-", "-", "-", ""};
    }
    const cache::Trial& winner = *result.winner;
    const auto speedup = speedup_over_default(result);
    const auto share = floor_share(result.problem, winner.timing.median_us, traits);
    return {winner.candidate + (winner.is_default ? " (default)" : ""),
            format_us(winner.timing.median_us),
            speedup ? fmt::format("{:.2f}x", *speedup) : "-",
            share ? format_share(*share) : "-",
            fmt::format("{}{}", cache::name(winner.provenance), result.reused ? ", known" : ""),
            cache::describe_ties(result.ties.others.size(), result.ties.within)};
}

}  // namespace

double bandwidth_floor_us(const Problem& problem, const DeviceTraits& traits) {
    if (problem.family == nullptr || problem.family->work == nullptr || !(traits.memory_bytes_per_s > 0))
        return 0;
    return problem.family->work(problem).bytes / traits.memory_bytes_per_s * 1e6;
}

std::optional<double> floor_share(const Problem& problem, double us, const DeviceTraits& traits) {
    const double floor = bandwidth_floor_us(problem, traits);
    if (!(floor > 0) || !(us > 0)) return std::nullopt;
    return floor / us;
}

std::optional<double> speedup_over_default(const ProblemResult& result) {
    if (!result.winner || !(result.winner->timing.median_us > 0)) return std::nullopt;
    if (result.winner->is_default) return 1.0;
    if (!result.fallback || !(result.fallback->timing.median_us > 0)) return std::nullopt;
    return result.fallback->timing.median_us / result.winner->timing.median_us;
}

std::string covers_text(const std::vector<CoverResult>& covers, const Page& page) {
    if (covers.empty()) return {};
    const auto loss = [](const std::optional<double>& share) { return share ? format_share(*share) : "-"; };
    Table table({{"kernels", Align::right},
                 {"sizes", Align::right},
                 {"mean loss", Align::right},
                 {"worst", Align::right},
                 {"static problem"}});
    for (const CoverResult& cover : covers) {
        const std::string problem =
            fmt::format("{} {}", cover.problem.family->name, static_text(cover.problem));
        table.add({std::to_string(cover.kernels.size()), std::to_string(cover.sizes), loss(cover.mean_loss),
                   loss(cover.worst_loss), cover.failure.empty() ? problem : cover.failure + ": " + problem});
    }
    return "few kernels for all sizes\n" + table.render(page, "  ") + '\n';
}

std::string tables(const TuneResult& result, const DeviceTraits& traits, const Page& page) {
    std::string text;
    for (auto first = result.problems.begin(); first != result.problems.end();) {
        const auto same = [&](const ProblemResult& other) {
            return static_part(other.problem) == static_part(first->problem);
        };
        const auto last = std::find_if_not(first, result.problems.end(), same);
        const bool has_ties =
            std::any_of(first, last, [](const ProblemResult& row) { return !row.ties.others.empty(); });
        Table table = table_for(*first->problem.family, has_ties);
        for (auto row = first; row != last; ++row) {
            std::vector<std::string> cells = sizes(row->problem);
            for (std::string& cell : outcome(*row, traits)) cells.push_back(std::move(cell));
            table.add(std::move(cells));
        }
        const std::string heading =
            fmt::format("{} {}", first->problem.family->name, static_text(first->problem));
        text += wrapped(split_words(heading), page, "    ", "") + table.render(page, "  ") + '\n';
        first = last;
    }
    return text;
}

}  // namespace hone::tuner
