#include "runtime/explain.h"

#include <fmt/format.h>

#include <array>
#include <stdexcept>

#include "runtime/bucket_index.h"

namespace hone::runtime {
namespace {

std::size_t dynamic_index(const Problem& problem) {
    return static_cast<std::size_t>(dynamic_field(*problem.family));
}

std::string measured_on(const cache::Trial& trial) {
    return fmt::format("{} ({} SMs), driver {}, NVRTC {}", trial.key.gpu.name, trial.key.gpu.sm_count,
                       trial.toolchain.driver, trial.toolchain.nvrtc);
}

std::vector<cache::Trial> trials_beside(const cache::Trial& winner, const cache::Cache& cache) {
    try {
        return cache.trials(
            {winner.key.gpu, winner.key.family, winner.key.static_fields, winner.key.dynamic_fields});
    } catch (const std::exception&) {
        return {};  // explaining goes on without a runner-up
    }
}

void add_runner_up(const cache::Trial& winner, const cache::Cache& cache, Explanation& explanation) {
    for (const cache::Trial& trial : trials_beside(winner, cache)) {
        const bool comparable =
            trial.status == cache::TrialStatus::ok && trial.provenance == winner.provenance;
        if (!comparable || trial.candidate == winner.candidate) continue;
        if (!explanation.runner_up.empty() && trial.timing.median_us >= explanation.runner_up_us) continue;
        explanation.runner_up = trial.candidate;
        explanation.runner_up_us = trial.timing.median_us;
    }
}

void add_measurement(const cache::LoadedWinner& record, const Facts& facts, Explanation& explanation) {
    explanation.measured_us = record.trial.timing.median_us;
    explanation.measured_on = measured_on(record.trial);
    explanation.layer = record.layer;
    if (facts.trials != nullptr) add_runner_up(record.trial, *facts.trials, explanation);
}

Problem at_bucket_edge(const Problem& problem, std::int64_t max, std::int64_t& first) {
    const std::size_t field = dynamic_index(problem);
    const BucketIndex index(bucket_edges(max));
    if (problem[field] < 1 || problem[field] > index.max()) {
        throw std::invalid_argument(fmt::format(
            "{} is {}; allowed: 1 to {}", problem.family->fields[field].name, problem[field], index.max()));
    }
    const std::size_t bucket = index.find(problem[field]);
    first = bucket == 0 ? 1 : index.edges()[bucket - 1] + 1;
    return with(problem, field, index.edges()[bucket]);
}

}  // namespace

BucketReport describe_choice(const Problem& at_last, std::int64_t first, const Choice& choice) {
    BucketReport report;
    report.first = first;
    report.last = at_last[dynamic_index(at_last)];
    report.candidate = to_string(choice.candidate);
    report.origin = choice.origin;
    report.trust = choice.trust;
    report.measured_at = choice.measured_at;
    if (choice.origin != Origin::exact) report.tune_command = tune_command(at_last, std::array{report.last});
    return report;
}

Explanation explain(const Problem& problem, std::int64_t max, const Facts& facts) {
    std::int64_t first = 1;
    const Problem edge = at_bucket_edge(problem, max, first);
    Knowledge knowledge = facts.winners->find(edge);
    const std::optional<Choice> choice = choose(edge, knowledge.winners, *facts.traits);
    if (!choice)
        throw std::invalid_argument(
            fmt::format("no kernel for {} on {}", to_string(edge), facts.traits->name));

    Explanation explanation;
    explanation.problem = to_string(problem);
    explanation.bucket = describe_choice(edge, first, *choice);
    explanation.passed_over = std::move(knowledge.passed_over);
    if (const auto fallback = choose_fallback(edge, *facts.traits))
        explanation.fallback = to_string(fallback->candidate);
    if (choice->record != nullptr) add_measurement(*choice->record, facts, explanation);
    return explanation;
}

}  // namespace hone::runtime
