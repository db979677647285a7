#include "tuner/search/knowledge.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "cache/layers.h"
#include "cache/provenance.h"
#include "kernel_templates/catalog.h"

namespace hone::tuner {
namespace {

using cache::distance_from_reality;
using cache::Provenance;
using cache::Trial;
using cache::TrialStatus;

std::string problem_name(const cache::TuningKey& key) {
    return key.family + ' ' + key.static_fields + ' ' + key.dynamic_fields;
}

}  // namespace

bool is_lasting(TrialStatus status) {
    switch (status) {
        case TrialStatus::over_limits:
        case TrialStatus::compile_failed:
        case TrialStatus::wrong_result:
        case TrialStatus::timed_out:
        case TrialStatus::crashed: return true;
        case TrialStatus::ok:
        case TrialStatus::launch_failed: return false;
    }
    return false;
}

cache::TuningKey tuning_key(const Problem& problem, const cache::GpuKey& gpu) {
    return {.gpu = gpu,
            .family = std::string(problem.family->name),
            .static_fields = static_text(problem),
            .dynamic_fields = dynamic_text(problem)};
}

Knowledge::Knowledge(const cache::Cache& cache, const DeviceInfo& device, Provenance provenance)
    : device_(device),
      provenance_(provenance),
      winners_(cache.past_winners()),
      past_races_(device.gpu),
      abandoned_(cache.abandoned()) {
    std::vector<Trial> races = winners_;
    std::ranges::move(cache.raced_trials(), std::back_inserter(races));
    past_races_.add(races);
    for (const Trial& trial :
         cache.trials({.gpu = device.gpu, .family = {}, .static_fields = {}, .dynamic_fields = {}})) {
        remember(trial);
    }
}

void Knowledge::add_lower(const std::vector<Trial>& trials) { past_races_.add(trials); }

void Knowledge::learn(const Trial& trial) {
    if (trial.key.gpu != device_.gpu) return;
    if (trial.winner) {
        winners_.insert(winners_.begin(), trial);
        past_races_.learn(trial);
    }
    remember(trial);
}

void Knowledge::learn_told(const Trial& trial) {
    if (!is_known(trial)) learn(trial);
}

bool Knowledge::is_known(const Trial& trial) const {
    const auto raced = raced_.find(problem_name(trial.key));
    return raced != raced_.end() && std::ranges::any_of(raced->second, [&](const Trial& known) {
               return known.candidate == trial.candidate && known.stage == trial.stage &&
                      known.created_at == trial.created_at && known.winner == trial.winner;
           });
}

/// Trials come in the order in which they were stored, so that a later one knows more. Their clock is not
/// asked.
void Knowledge::remember(const Trial& trial) {
    if (trial.toolchain != device_.toolchain || trial.provenance != provenance_) return;
    const std::string name = problem_name(trial.key);
    trials_[name].insert_or_assign(trial.candidate, trial);
    if (trial.stage != cache::Stage::screened) raced_[name].push_back(trial);
}

std::optional<Trial> Knowledge::finished_winner(const Problem& problem) const {
    const cache::TuningKey key = tuning_key(problem, device_.gpu);
    const Trial* best = nullptr;
    for (const Trial& trial : winners_) {
        if (trial.key != key || trial.stage != cache::Stage::final_round) continue;
        if (cache::trust_of(trial, device_.gpu, device_.toolchain) != cache::Trust::exact) continue;
        if (distance_from_reality(trial.provenance) > distance_from_reality(provenance_)) continue;
        const int distance = distance_from_reality(trial.provenance);
        if (best == nullptr || distance < distance_from_reality(best->provenance)) best = &trial;
    }
    return best == nullptr ? std::nullopt : std::optional(*best);
}

std::optional<Trial> Knowledge::stored_default(const Problem& problem) const {
    const auto found = trials_.find(problem_name(tuning_key(problem, device_.gpu)));
    if (found == trials_.end()) return std::nullopt;
    for (const auto& [name, trial] : found->second) {
        if (trial.is_default && trial.status == TrialStatus::ok) return trial;
    }
    return std::nullopt;
}

std::optional<Trial> Knowledge::stored_runner_up(const Problem& problem, const Trial& winner) const {
    const auto found = trials_.find(problem_name(tuning_key(problem, device_.gpu)));
    if (found == trials_.end()) return std::nullopt;
    const Trial* best = nullptr;
    for (const auto& [name, trial] : found->second) {
        if (trial.status != TrialStatus::ok || name == winner.candidate) continue;
        const auto rank = [](const Trial& of) {
            return std::tuple(of.stage != cache::Stage::final_round, of.timing.median_us);
        };
        if (best == nullptr || rank(trial) < rank(*best)) best = &trial;
    }
    return best == nullptr ? std::nullopt : std::optional(*best);
}

cache::Ties Knowledge::stored_ties(const Problem& problem, const Trial& winner) const {
    const auto found = raced_.find(problem_name(tuning_key(problem, device_.gpu)));
    return found == raced_.end() ? cache::Ties{} : cache::ties_of(winner, found->second);
}

std::vector<MeasuredKernel> Knowledge::raced_kernels(const Problem& problem) const {
    std::vector<MeasuredKernel> kernels;
    const auto found = trials_.find(problem_name(tuning_key(problem, device_.gpu)));
    if (found == trials_.end()) return kernels;
    for (const auto& [name, trial] : found->second) {
        if (trial.status != TrialStatus::ok || trial.stage == cache::Stage::screened) continue;
        const std::optional<Candidate> candidate = parse_candidate(*problem.family, name);
        if (candidate && template_hash(*candidate->variant) == trial.template_hash)
            kernels.push_back({*candidate, trial.timing.median_us});
    }
    return kernels;
}

std::vector<Knowledge::TimedKernel> Knowledge::timed_kernels(const Problem& problem) const {
    std::vector<TimedKernel> kernels;
    const auto found = trials_.find(problem_name(tuning_key(problem, device_.gpu)));
    if (found == trials_.end()) return kernels;
    for (const auto& [name, trial] : found->second) {
        if (trial.status == TrialStatus::ok) kernels.push_back({&name, trial.timing.median_us});
    }
    return kernels;
}

const Trial* Knowledge::valid_trial(const Problem& problem, const Candidate& candidate) const {
    const auto found = trials_.find(problem_name(tuning_key(problem, device_.gpu)));
    if (found == trials_.end()) return nullptr;
    const auto trial = found->second.find(to_string(candidate));
    const bool holds =
        trial != found->second.end() && trial->second.template_hash == template_hash(*candidate.variant);
    return holds ? &trial->second : nullptr;
}

std::vector<Knowledge::Culprit> Knowledge::culprits(const Problem& problem) const {
    const cache::TuningKey key = tuning_key(problem, device_.gpu);
    std::vector<Culprit> found;
    for (const cache::InFlight& row : abandoned_) {
        if (row.key != key) continue;
        const std::optional<Candidate> candidate = parse_candidate(*problem.family, row.candidate);
        if (candidate) found.push_back({row, *candidate});
    }
    return found;
}

}  // namespace hone::tuner
