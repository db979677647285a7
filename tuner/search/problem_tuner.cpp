#include "tuner/search/problem_tuner.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>

#include "cache/process.h"
#include "kernel_templates/catalog.h"
#include "tuner/search/statistics.h"

namespace hone::tuner {
namespace {

using cache::Trial;
using cache::TrialStatus;

constexpr const char* stopped_early = "stopped before any candidate was measured";
constexpr int attempts_over_runs = 3;  // a candidate that three runs did not survive gets no fourth

/// Static plus the largest dynamic shared memory of any launch.
cache::Resources with_plan(cache::Resources resources, const Plan& plan) {
    std::uint32_t dynamic = 0;
    for (int i = 0; i < plan.launch_count; ++i) {
        dynamic = std::max(dynamic, plan.launches[static_cast<std::size_t>(i)].shared_bytes);
    }
    resources.shared_bytes += static_cast<int>(dynamic);
    return resources;
}

std::int64_t most_threads(const Plan& plan) {
    std::int64_t threads = 0;
    for (int i = 0; i < plan.launch_count; ++i) {
        const Dim3& block = plan.launches[static_cast<std::size_t>(i)].block;
        threads = std::max(threads, std::int64_t{block.x} * block.y * block.z);
    }
    return threads;
}

Verdict over_limits(std::string detail) {
    return {.status = TrialStatus::over_limits, .detail = std::move(detail)};
}

Trial new_trial(const Problem& problem, const Candidate& candidate, const Measurer& measurer) {
    return {.key = tuning_key(problem, measurer.device().gpu),
            .toolchain = measurer.device().toolchain,
            .candidate = to_string(candidate),
            .template_hash = std::string(template_hash(*candidate.variant)),
            .provenance = measurer.provenance(),
            .timing = {},
            .resources = {},
            .detail = {},
            .created_at = cache::now_ms(),
            .tool_version = HONE_VERSION};
}

}  // namespace

std::optional<Trial> predicted_answer(const Problem& problem, const RunContext& run) {
    if (run.measurer.provenance() != cache::Provenance::predicted) return std::nullopt;
    const CandidateList candidates = list_candidates(problem, run);
    const std::optional<Predicted> best = best_predicted(problem, candidates, run.measurer);
    if (!best) return std::nullopt;
    Trial trial = new_trial(problem, best->candidate, run.measurer);
    trial.is_default = candidates.fallback == best->candidate;
    trial.stage = cache::Stage::screened;
    trial.winner = true;
    trial.timing = summarize(std::array{best->us});
    trial.detail = "not compiled";
    return trial;
}

ProblemTuner::ProblemTuner(const Problem& problem, CandidateList candidates, RunContext& run)
    : problem_(problem),
      candidates_(std::move(candidates)),
      run_(run),
      key_(tuning_key(problem, run.measurer.device().gpu)) {
    result_.problem = problem;
    for (const Knowledge::Culprit& culprit : run.knowledge.culprits(problem)) {
        culprits_.emplace(to_string(culprit.candidate), culprit.row);
    }
}

ProblemResult ProblemTuner::run() {
    const Verdict ready = run_.measurer.begin_problem(problem_);
    if (ready.status != TrialStatus::ok) {
        result_.failure = run_.stop() ? stopped_early : ready.detail;
        return std::move(result_);
    }
    Race race(run_.measurer, *this);
    enter_all(race);
    const Decision decision =
        is_looked_at_again() ? race.finish() : race.finish([this] { return begin_anew(); });
    run_.measurer.end_problem();
    conclude(race, decision);
    return std::move(result_);
}

/// Then it is asked in other buffers there whether the winner is one.
bool ProblemTuner::is_looked_at_again() const {
    return run_.options.effort == Effort::quick && !was_raced_here(problem_, run_);
}

std::optional<ProblemResult> ProblemTuner::challenge() {
    if (run_.measurer.begin_problem(problem_).status != TrialStatus::ok) return std::nullopt;
    Race race(run_.measurer, *this);
    enter_all(race);
    const std::optional<Decision> decision = race.challenge([this] { return begin_anew(); });
    run_.measurer.end_problem();
    if (!decision) return std::nullopt;
    conclude(race, *decision);
    return result_;
}

/// Other buffers, filled anew: what a kernel owes to where its buffers lay is gone.
bool ProblemTuner::begin_anew() {
    run_.measurer.end_problem();
    return run_.measurer.begin_problem(problem_).status == TrialStatus::ok;
}

void ProblemTuner::enter_all(Race& race) {
    for (const Candidate& candidate : candidates_.order) {
        if (run_.stop()) return;
        if (!known_to_fail(candidate) && !known_to_lose(race, candidate)) try_candidate(race, candidate);
        run_.candidate_done(race.best_us());
    }
}

void ProblemTuner::time_all() {
    constexpr double any = std::numeric_limits<double>::infinity();
    if (run_.measurer.begin_problem(problem_).status != TrialStatus::ok) return;
    Race race(run_.measurer, *this,
              {.heat_limit = any, .short_heat_limit = any, .heat_seats = candidates_.order.size()});
    for (const Candidate& candidate : candidates_.order) {
        if (run_.stop()) break;
        if (!known_to_fail(candidate)) try_candidate(race, candidate);
    }
    if (!run_.stop()) race.heat();
    run_.measurer.end_problem();
}

/// The default is compared whatever it takes.
bool ProblemTuner::known_to_lose(const Race& race, const Candidate& candidate) const {
    const std::optional<double> least_us = run_.measurer.least_us(problem_, candidate);
    return least_us && !is_default(candidate) && race.is_lost_at(*least_us);
}

void ProblemTuner::try_candidate(Race& race, const Candidate& candidate) {
    std::optional<Contestant> next = contestant(candidate);
    if (!next) return;
    ++result_.candidates;
    race.enter(std::move(*next));
}

bool ProblemTuner::known_to_fail(const Candidate& candidate) {
    const std::string name = to_string(candidate);
    if (const auto culprit = culprits_.find(name);
        culprit != culprits_.end() && culprit->second.attempt >= attempts_over_runs) {
        reject(candidate,
               {.status = TrialStatus::crashed, .detail = "three runs ended while it was being measured"},
               {});
        return true;
    }
    const Trial* known = run_.knowledge.valid_trial(problem_, candidate);
    if (known == nullptr || !is_lasting(known->status)) return false;
    ++result_.failed;
    if (first_failure_.empty()) first_failure_ = name + ": " + known->detail;
    end_in_flight(name);
    return true;
}

/// Compiles, prunes, and makes the candidate ready to race; nothing when it ends here.
std::optional<Contestant> ProblemTuner::contestant(const Candidate& candidate) {
    Contestant next{.image = {.candidate = candidate},
                    .is_default = is_default(candidate),
                    .is_incumbent = candidates_.incumbent == candidate,
                    .resources = {},
                    .known_us = {}};
    const Plan plan = candidate.variant->plan(problem_, candidate.config, run_.measurer.device().traits);
    if (run_.measurer.needs_images()) {
        ImageSource::Result compiled = run_.images.get(problem_, candidate);
        if (compiled.status != TrialStatus::ok && run_.stop()) return std::nullopt;  // given up, it may be
        if (compiled.is_accident) {
            set_aside(candidate, compiled.detail);
            return std::nullopt;
        }
        next.resources = with_plan(compiled.image.resources, plan);
        Verdict verdict{.status = compiled.status, .detail = compiled.detail};
        if (verdict.status == TrialStatus::ok) verdict = prune(candidate, next.resources);
        if (verdict.status != TrialStatus::ok) {
            reject(candidate, verdict, next.resources);
            return std::nullopt;
        }
        next.image.image = &images_.emplace_back(std::move(compiled.image));
    } else {
        next.resources = with_plan(run_.measurer.resources_of(candidate).value_or(cache::Resources{}), plan);
    }
    const Trial* known = run_.options.retune ? nullptr : run_.knowledge.valid_trial(problem_, candidate);
    if (known != nullptr && known->status == TrialStatus::ok) next.known_us = known->timing.median_us;
    return next;
}

/// The default is spared the rule against spills: it is what runs when nothing is known, and must be
/// compared.
Verdict ProblemTuner::prune(const Candidate& candidate, const cache::Resources& resources) const {
    const DeviceTraits& traits = run_.measurer.device().traits;
    const Plan plan = candidate.variant->plan(problem_, candidate.config, traits);
    if (resources.spill_bytes > 0 && !is_default(candidate)) {
        return over_limits(fmt::format("spills {} bytes of registers to memory", resources.spill_bytes));
    }
    const std::int64_t registers = resources.registers * most_threads(plan);
    if (registers > traits.registers_per_sm) {
        return over_limits(
            fmt::format("a block needs {} registers, an SM has {}", registers, traits.registers_per_sm));
    }
    if (resources.shared_bytes > traits.max_shared_bytes_per_block) {
        return over_limits(fmt::format("a block needs {} bytes of shared memory, {} are allowed",
                                       resources.shared_bytes, traits.max_shared_bytes_per_block));
    }
    return {};
}

Trial ProblemTuner::trial_of(const Candidate& candidate) const {
    Trial trial = new_trial(problem_, candidate, run_.measurer);
    trial.is_default = is_default(candidate);
    return trial;
}

void ProblemTuner::store(Trial trial) {
    run_.cache.store(trial);
    end_in_flight(trial.candidate);
    run_.knowledge.learn(trial);
    if (run_.tell) run_.tell(trial);
    latest_.insert_or_assign(trial.candidate, std::move(trial));
}

/// Nothing is known of it, and nothing stored: another run may try it.
void ProblemTuner::set_aside(const Candidate& candidate, const std::string& why) {
    ++result_.candidates;
    ++result_.failed;
    if (first_failure_.empty()) first_failure_ = to_string(candidate) + ": " + why;
}

void ProblemTuner::reject(const Candidate& candidate, const Verdict& verdict,
                          const cache::Resources& resources) {
    Trial trial = trial_of(candidate);
    trial.status = verdict.status;
    trial.detail = verdict.detail;
    trial.resources = resources;
    run_.measurer.note_rejected(candidate, verdict, resources);
    ++result_.candidates;
    ++result_.failed;
    if (first_failure_.empty()) first_failure_ = trial.candidate + ": " + trial.detail;
    store(std::move(trial));
}

void ProblemTuner::about_to_launch(const Contestant& contestant) {
    const std::string name = to_string(contestant.image.candidate);
    if (in_flight_.contains(name)) return;
    const auto culprit = culprits_.find(name);
    const cache::InFlight row{.key = key_,
                              .candidate = name,
                              .pid = getpid(),
                              .started_at = cache::now_ms(),
                              .attempt = culprit == culprits_.end() ? 1 : culprit->second.attempt + 1};
    run_.cache.begin(row);
    in_flight_.emplace(name, row);
}

/// Removes this run's row and, once the candidate has a trial, that of the run that did not survive it.
void ProblemTuner::end_in_flight(const std::string& candidate) {
    for (auto* rows : {&in_flight_, &culprits_}) {
        const auto row = rows->find(candidate);
        if (row == rows->end()) continue;
        run_.cache.end(row->second);
        rows->erase(row);
    }
}

/// Later than all before it, so that the order of heats and finals can be told from their times.
std::int64_t ProblemTuner::batch_time(cache::Stage stage) {
    const auto [batch, is_new] = batch_at_.try_emplace(stage);
    if (is_new) batch->second = run_.latest_batch_ms = std::max(cache::now_ms(), run_.latest_batch_ms + 1);
    return batch->second;
}

void ProblemTuner::settled(const Standing& standing, bool winner) {
    if (standing.stage == cache::Stage::screened && !winner) ++launched_;
    Trial trial = trial_of(standing.contestant.image.candidate);
    trial.status = standing.verdict.status;
    trial.stage = standing.stage;
    if (trial.stage != cache::Stage::screened) trial.created_at = batch_time(trial.stage);
    trial.winner = winner;
    trial.resources = standing.contestant.resources;
    trial.detail = standing.verdict.detail;
    trial.energy_mj = standing.energy_mj;
    if (!standing.failed()) {
        trial.timing = summarize(standing.us);
        trial.timing.sm_clock_mhz = standing.sm_clock_mhz;
        trial.timing.incumbent_ratio = standing.incumbent_ratio;
    }
    if (standing.failed()) {
        ++result_.failed;
        if (first_failure_.empty()) first_failure_ = trial.candidate + ": " + trial.detail;
    }
    store(std::move(trial));
}

void ProblemTuner::conclude(const Race& race, const Decision& decision) {
    const auto latest = [&](const Standing& standing) -> std::optional<Trial> {
        const auto found = latest_.find(to_string(standing.contestant.image.candidate));
        return found == latest_.end() ? std::nullopt : std::optional(found->second);
    };
    const std::vector<Standing>& standings = race.standings();
    if (decision.winner) result_.winner = latest(standings[*decision.winner]);
    if (result_.winner) result_.ties = run_.knowledge.stored_ties(problem_, *result_.winner);
    if (decision.runner_up) result_.runner_up = latest(standings[*decision.runner_up]);
    for (const Standing& standing : standings) {
        if (standing.contestant.is_default && !standing.failed()) result_.fallback = latest(standing);
    }
    if (result_.winner) return;
    if (run_.stop()) result_.failure = stopped_early;
    if (result_.failure.empty()) {
        result_.failure = first_failure_.empty()
                              ? "no candidate of this family may run on this GPU"
                              : "no candidate is valid; the first one failed: " + first_failure_;
    }
}

}  // namespace hone::tuner
