#include "tuner/search/knowledge.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "cache/layers.h"
#include "kernel_templates/catalog.h"
#include "runtime/dispatch/choice.h"

namespace hone::tuner {
namespace {

using cache::Provenance;
using cache::Trial;
using cache::TrialStatus;

/// Smaller is more real.
int distance_from_reality(Provenance provenance) {
    switch (provenance) {
        case Provenance::measured: return 0;
        case Provenance::replayed: return 1;
        case Provenance::predicted: return 2;
    }
    return 3;
}

std::string problem_name(const cache::TuningKey& key) {
    return key.family + ' ' + key.static_fields + ' ' + key.dynamic_fields;
}

bool same_static(const Trial& trial, const Problem& problem) {
    return trial.key.family == problem.family->name && trial.key.static_fields == static_text(problem);
}

/// How many doublings lie between two problems; 0 for one that this build does not take.
double doublings_between(const Trial& trial, const Problem& problem) {
    const auto stored =
        parse_problem(*problem.family, trial.key.static_fields + ' ' + trial.key.dynamic_fields);
    return stored ? runtime::log2_distance(*stored, problem) : 0;
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

Knowledge::Knowledge(const cache::Cache& cache, std::vector<Trial> lower_winners, const DeviceInfo& device,
                     Provenance provenance)
    : device_(device),
      provenance_(provenance),
      winners_(cache.past_winners()),
      lower_winners_(std::move(lower_winners)),
      abandoned_(cache.abandoned()) {
    for (const Trial& trial :
         cache.trials({.gpu = device.gpu, .family = {}, .static_fields = {}, .dynamic_fields = {}})) {
        remember(trial);
    }
}

void Knowledge::learn(const Trial& trial) {
    if (trial.key.gpu != device_.gpu) return;
    if (trial.winner) winners_.insert(winners_.begin(), trial);
    remember(trial);
}

/// Trials come in the order in which they were stored, so that a later one knows more. Their clock is not
/// asked.
void Knowledge::remember(const Trial& trial) {
    if (trial.toolchain != device_.toolchain || trial.provenance != provenance_) return;
    trials_[problem_name(trial.key)].insert_or_assign(trial.candidate, trial);
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

const Trial* Knowledge::valid_trial(const Problem& problem, const Candidate& candidate) const {
    const auto found = trials_.find(problem_name(tuning_key(problem, device_.gpu)));
    if (found == trials_.end()) return nullptr;
    const auto trial = found->second.find(to_string(candidate));
    const bool holds =
        trial != found->second.end() && trial->second.template_hash == template_hash(*candidate.variant);
    return holds ? &trial->second : nullptr;
}

std::vector<Candidate> Knowledge::seeds(const Problem& problem, std::size_t limit) const {
    std::vector<std::pair<double, const Trial*>> near;
    for (const std::vector<Trial>* layer : {&winners_, &lower_winners_}) {
        for (const Trial& trial : *layer) {
            if (!same_static(trial, problem)) continue;
            const double other_gpu = trial.key.gpu == device_.gpu ? 0 : 0.5;
            near.emplace_back(doublings_between(trial, problem) + other_gpu, &trial);
        }
    }
    std::ranges::stable_sort(near, {}, &std::pair<double, const Trial*>::first);
    std::vector<Candidate> seeds;
    for (const auto& [distance, trial] : near) {
        const std::optional<Candidate> candidate = parse_candidate(*problem.family, trial->candidate);
        if (!candidate || std::ranges::find(seeds, *candidate) != seeds.end()) continue;
        if (seeds.size() < limit && allowed(problem, *candidate, device_.traits)) seeds.push_back(*candidate);
    }
    return seeds;
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
