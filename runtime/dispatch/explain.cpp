#include "runtime/dispatch/explain.h"

#include <fmt/format.h>

#include <array>
#include <stdexcept>

#include "cache/ties.h"
#include "runtime/dispatch/bucket_grid.h"

namespace hone::runtime {
namespace {

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

void add_runner_up(const cache::Trial& winner, const std::vector<cache::Trial>& trials,
                   Explanation& explanation) {
    for (const cache::Trial& trial : trials) {
        const bool comparable =
            trial.status == cache::TrialStatus::ok && trial.provenance == winner.provenance;
        if (!comparable || trial.candidate == winner.candidate) continue;
        if (!explanation.runner_up.empty() && trial.timing.median_us >= explanation.runner_up_us) continue;
        explanation.runner_up = trial.candidate;
        explanation.runner_up_us = trial.timing.median_us;
    }
}

void add_ties(const cache::Ties& ties, Explanation& explanation) {
    for (const cache::Trial& trial : ties.others) explanation.tied_with.push_back(trial.candidate);
    explanation.tied_within = ties.within;
}

void add_measurement(const cache::LoadedWinner& record, const Facts& facts, Explanation& explanation) {
    explanation.measured_us = record.trial.timing.median_us;
    explanation.measured_at_mhz = record.trial.timing.sm_clock_mhz;
    explanation.measured_on = measured_on(record.trial);
    explanation.layer = record.layer;
    explanation.chain = record.trial.chain;
    if (facts.trials == nullptr) return;
    const std::vector<cache::Trial> trials = trials_beside(record.trial, *facts.trials);
    add_runner_up(record.trial, trials, explanation);
    add_ties(cache::ties_of(record.trial, trials), explanation);
}

void check_inside(const Problem& problem, const Problem& largest) {
    for (const std::uint8_t field : dynamic_fields(*problem.family)) {
        if (problem[field] >= 1 && problem[field] <= largest[field]) continue;
        throw std::invalid_argument(fmt::format("{} is {}; allowed: 1 to {}",
                                                problem.family->fields[field].name, problem[field],
                                                largest[field]));
    }
}

}  // namespace

BucketReport describe_choice(const Problem& first, const Problem& last, const Choice& choice) {
    BucketReport report;
    for (const std::uint8_t field : dynamic_fields(*last.family))
        report.sizes.push_back({std::string(last.family->fields[field].name), first[field], last[field]});
    report.candidate = to_string(choice.candidate);
    report.origin = choice.origin;
    report.trust = choice.trust;
    report.measured_at = choice.measured_at;
    if (choice.origin != Origin::exact)
        report.tune_command = tune_command(last, std::array{report.sizes.back().last});
    return report;
}

Explanation explain(const Problem& problem, const Problem& largest, const Facts& facts) {
    check_inside(problem, largest);
    Knowledge knowledge = facts.winners->find(largest);
    const BucketGrid grid(largest, {}, measured_between(largest, knowledge, *facts.traits));
    const std::size_t cell = grid.find(sizes_of(problem));
    const Problem edge = grid.last(cell);
    const std::optional<Choice> choice = choose(edge, knowledge.winners, *facts.traits);
    if (!choice)
        throw std::invalid_argument(
            fmt::format("no kernel for {} on {}", to_string(edge), facts.traits->name));

    Explanation explanation;
    explanation.problem = to_string(problem);
    explanation.bucket = describe_choice(grid.first(cell), edge, *choice);
    explanation.passed_over = std::move(knowledge.passed_over);
    if (const auto fallback = choose_fallback(edge, *facts.traits))
        explanation.fallback = to_string(fallback->candidate);
    if (choice->record != nullptr) add_measurement(*choice->record, facts, explanation);
    return explanation;
}

}  // namespace hone::runtime
