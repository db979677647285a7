#include "tuner/search/problem_tuner.h"

#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

#include "kernel_templates/catalog.h"
#include "kernel_templates/space.h"
#include "tuner/search/statistics.h"

namespace hone::tuner {
namespace {

using cache::Trial;
using cache::TrialStatus;

constexpr int attempts_over_runs = 3;  // a candidate that three runs did not survive gets no fourth

std::int64_t unix_ms() {
    using namespace std::chrono;
    return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

void add(std::vector<Candidate>& list, const Candidate& candidate) {
    if (std::ranges::find(list, candidate) == list.end()) list.push_back(candidate);
}

/// A few of every variant, so that a model that misjudges one variant as a whole cannot keep it out.
void add_best_of(const Variant& variant, const std::vector<RankedCandidate>& ranked, int seats,
                 std::vector<Candidate>& list) {
    int taken = 0;
    for (const RankedCandidate& next : ranked) {
        if (taken == seats) return;
        if (next.candidate.variant != &variant) continue;
        add(list, next.candidate);
        ++taken;
    }
}

int seats_of_a_variant(Effort effort) {
    return effort == Effort::known ? 0 : effort == Effort::quick ? 2 : 8;
}
std::size_t seed_limit(Effort effort) { return effort == Effort::known ? 2 : 8; }

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

}  // namespace

std::size_t candidate_limit(Effort effort) {
    switch (effort) {
        case Effort::quick: return 16;
        case Effort::standard: return 128;
        case Effort::exhaustive: return SIZE_MAX;
        case Effort::known: return 0;
    }
    return 128;
}

CandidateList list_candidates(const Problem& problem, const RunContext& run) {
    const DeviceTraits& traits = run.measurer.device().traits;
    CandidateList list{.order = {}, .fallback = fallback(problem, traits)};
    std::vector<Candidate> wanted;
    if (list.fallback) wanted.push_back(*list.fallback);
    for (const Candidate& seed : run.knowledge.seeds(problem, seed_limit(run.options.effort)))
        add(wanted, seed);
    const std::vector<RankedCandidate> ranked = ranked_space(problem, traits);
    const std::size_t limit = std::min(ranked.size(), candidate_limit(run.options.effort));
    for (std::size_t i = 0; i < limit; ++i) add(wanted, ranked[i].candidate);
    const int seats = seats_of_a_variant(run.options.effort);
    for (const Variant* variant : problem.family->variants) add_best_of(*variant, ranked, seats, wanted);
    std::erase_if(wanted, [&](const Candidate& c) { return !run.measurer.can_measure(problem, c); });

    std::vector<Candidate> last;
    for (const Knowledge::Culprit& culprit : run.knowledge.culprits(problem)) {
        if (allowed(problem, culprit.candidate, traits)) add(last, culprit.candidate);
    }
    for (const Candidate& candidate : wanted) {
        if (std::ranges::find(last, candidate) == last.end()) list.order.push_back(candidate);
    }
    list.first_culprit = list.order.size();
    list.order.insert(list.order.end(), last.begin(), last.end());
    return list;
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
        result_.failure = ready.detail;
        return std::move(result_);
    }
    Race race(run_.measurer, *this);
    for (const Candidate& candidate : candidates_.order) {
        if (run_.stop()) break;
        if (!known_to_fail(candidate)) try_candidate(race, candidate);
        run_.candidate_done();
    }
    const Decision decision = race.finish();
    run_.measurer.end_problem();
    conclude(race, decision);
    return std::move(result_);
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
                    .resources = {},
                    .known_us = {}};
    const Plan plan = candidate.variant->plan(problem_, candidate.config, run_.measurer.device().traits);
    if (run_.measurer.needs_images()) {
        ImageSource::Result compiled = run_.images.get(problem_, candidate);
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
    return {.key = key_,
            .toolchain = run_.measurer.device().toolchain,
            .candidate = to_string(candidate),
            .template_hash = std::string(template_hash(*candidate.variant)),
            .provenance = run_.measurer.provenance(),
            .is_default = is_default(candidate),
            .timing = {},
            .resources = {},
            .detail = {},
            .created_at = unix_ms(),
            .tool_version = HONE_VERSION};
}

void ProblemTuner::store(Trial trial) {
    run_.cache.store(trial);
    end_in_flight(trial.candidate);
    run_.knowledge.learn(trial);
    latest_.insert_or_assign(trial.candidate, std::move(trial));
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
                              .started_at = unix_ms(),
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

void ProblemTuner::settled(const Standing& standing, bool winner) {
    if (standing.stage == cache::Stage::screened && !winner) ++launched_;
    Trial trial = trial_of(standing.contestant.image.candidate);
    trial.status = standing.verdict.status;
    trial.stage = standing.stage;
    trial.winner = winner;
    trial.resources = standing.contestant.resources;
    trial.detail = standing.verdict.detail;
    trial.energy_mj = standing.energy_mj;
    if (!standing.failed()) trial.timing = summarize(standing.us);
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
    if (decision.runner_up) result_.runner_up = latest(standings[*decision.runner_up]);
    for (const Standing& standing : standings) {
        if (standing.contestant.is_default && !standing.failed()) result_.fallback = latest(standing);
    }
    if (result_.winner) return;
    if (run_.stop()) result_.failure = "stopped before any candidate was measured";
    if (result_.failure.empty()) {
        result_.failure = first_failure_.empty()
                              ? "no candidate of this family may run on this GPU"
                              : "no candidate is valid; the first one failed: " + first_failure_;
    }
}

}  // namespace hone::tuner
