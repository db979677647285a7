#include "tuner/report/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runtime/system/short_text.h"
#include "tuner/report/report.h"

namespace hone::tuner {
namespace {

constexpr std::size_t most_shown = 3;

double winner_us(const ProblemResult& result) { return result.winner ? result.winner->timing.median_us : 0; }

/// Microseconds that a call takes less than with the default; 0 where that is not known.
double saved_us(const ProblemResult& result) {
    const bool is_known = result.winner && result.fallback && !result.winner->is_default;
    return is_known ? result.fallback->timing.median_us - winner_us(result) : 0;
}

void count(const ProblemResult& result, Summary& summary, double& logarithms) {
    ++summary.reached;
    if (!result.winner) {
        ++summary.failed;
        return;
    }
    ++(result.reused ? summary.known : summary.raced);
    if (result.winner->is_default) ++summary.kept_default;
    if (!result.ties.others.empty()) ++summary.tied;
    if (const std::optional<double> speedup = speedup_over_default(result); speedup && *speedup > 0) {
        ++summary.compared;
        logarithms += std::log(*speedup);
    }
    if (summary.slowest == nullptr || winner_us(result) > winner_us(*summary.slowest))
        summary.slowest = &result;
    if (saved_us(result) > 0) summary.most_saved.push_back(&result);
}

std::string counts(const Summary& summary) {
    std::string text = fmt::format("{} problems: {} tuned now, {} known before, {} failed", summary.wanted,
                                   summary.raced, summary.known, summary.failed);
    if (summary.reached < summary.wanted)
        text += fmt::format(", {} not reached", summary.wanted - summary.reached);
    return text;
}

std::string speed(const Summary& summary) {
    std::string kept = fmt::format("{} keep the default", summary.kept_default);
    if (summary.tied > 0) kept += fmt::format("; {} tied with others", summary.tied);
    if (!summary.speedup) return kept;
    return fmt::format("{:.2f}x as fast as the default in the geometric mean of {}; {}", *summary.speedup,
                       summary.compared, kept);
}

/// Sizes before what many problems share: what is cut off at the page's end is alike.
std::string of_problem(const ProblemResult& result) {
    const std::optional<double> speedup = speedup_over_default(result);
    return fmt::format("{} us{}  {} {} {}", format_us(winner_us(result)),
                       speedup ? fmt::format(", {:.2f}x", *speedup) : "", result.problem.family->name,
                       dynamic_text(result.problem), static_text(result.problem));
}

}  // namespace

Summary summarize(std::span<const TuneResult* const> results, std::size_t wanted) {
    Summary summary{.wanted = wanted};
    double logarithms = 0;
    for (const TuneResult* result : results) {
        for (const ProblemResult& problem : result->problems) count(problem, summary, logarithms);
    }
    if (summary.compared > 0) summary.speedup = std::exp(logarithms / static_cast<double>(summary.compared));
    std::ranges::stable_sort(summary.most_saved, std::ranges::greater(),
                             [](const ProblemResult* result) { return saved_us(*result); });
    if (summary.most_saved.size() > most_shown) summary.most_saved.resize(most_shown);
    return summary;
}

std::string to_text(const Summary& summary, const Page& page) {
    std::vector<std::string> lines{counts(summary)};
    if (summary.raced + summary.known > 0) lines.push_back(speed(summary));
    for (const ProblemResult* result : summary.most_saved)
        lines.push_back((lines.size() == 2 ? "most gained: " : "             ") + of_problem(*result));
    if (summary.slowest != nullptr) lines.push_back("slowest:     " + of_problem(*summary.slowest));
    std::string text;
    for (const std::string& line : lines)
        text += fitted("  " + runtime::escape_controls(line), page.columns) + '\n';
    return text;
}

}  // namespace hone::tuner
