#include "tuner/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tuner/report_text.h"

namespace hone::tuner {
namespace {

std::string dynamic_title(const Problem& problem) {
    const int field = dynamic_field(*problem.family);
    return field < 0 ? "size" : std::string(problem.family->fields[static_cast<std::size_t>(field)].name);
}

std::string dynamic_value(const Problem& problem) {
    const int field = dynamic_field(*problem.family);
    return field < 0 ? "-" : fmt::format("{}", problem[static_cast<std::size_t>(field)]);
}

std::vector<std::string> cells(const ProblemResult& result, const DeviceTraits& traits) {
    if (!result.winner) {
        const std::string why = result.failure.empty() ? "not reached" : result.failure;
        return {dynamic_value(result.problem), "- " + why, "-", "-", "-", "-"};
    }
    const cache::Trial& winner = *result.winner;
    const auto speedup = speedup_over_default(result);
    const auto share = floor_share(result.problem, winner.timing.median_us, traits);
    return {dynamic_value(result.problem),
            winner.candidate + (winner.is_default ? " (default)" : ""),
            format_us(winner.timing.median_us),
            speedup ? fmt::format("{:.2f}x", *speedup) : "-",
            share ? format_share(*share) : "-",
            fmt::format("{}{}", cache::name(winner.provenance), result.reused ? ", known" : "")};
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

std::string tables(const TuneResult& result, const DeviceTraits& traits, bool colour) {
    std::string text;
    for (auto first = result.problems.begin(); first != result.problems.end();) {
        const auto same = [&](const ProblemResult& other) {
            return static_part(other.problem) == static_part(first->problem);
        };
        const auto last = std::find_if_not(first, result.problems.end(), same);
        Table table({{dynamic_title(first->problem), Align::right},
                     {"winner", Align::left},
                     {"us", Align::right},
                     {"vs default", Align::right},
                     {"of floor", Align::right},
                     {"provenance", Align::left}});
        for (auto row = first; row != last; ++row) table.add(cells(*row, traits));
        text += fmt::format("{} {}\n{}\n", first->problem.family->name, static_text(first->problem),
                            table.render(colour, "  "));
        first = last;
    }
    return text;
}

std::string missing_families(const std::vector<ModelOperator>& missing) {
    if (missing.empty()) return {};
    std::vector<std::string> items;
    for (const ModelOperator& op : missing) {
        items.push_back(op.shape.empty() ? op.role
                                         : fmt::format("{} ({}, {})", op.role, op.family, op.shape));
    }
    return fmt::format("not tuned with a model yet: {}", fmt::join(items, "; "));
}

}  // namespace hone::tuner
