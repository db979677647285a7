// tune() with real worker processes on the fake driver.
#include "tests/tuner/fake_gpu.h"

#include <doctest/doctest.h>

using namespace hone;
using namespace hone::tuner;
using namespace hone::test;
using cache::TrialStatus;

namespace {

TuneResult tune_all(cache::Cache& cache, const std::vector<std::int64_t>& rows) {
    GpuSession session =
        open_gpu(cache, first_gpu(), quick_limits(), {.arch = {}, .nvrtc = {}, .workers = 2});
    return tune(norm_workload(rows), {.effort = Effort::quick, .budget = {}}, *session.measurer,
                *session.images, cache, {}, never);
}

std::optional<cache::Trial> trial_named(const cache::Cache& cache, const std::string& name) {
    for (const cache::Trial& trial : cache.trials()) {
        if (trial.candidate == name) return trial;
    }
    return std::nullopt;
}

}  // namespace

TEST_CASE("a workload is tuned on a GPU, and again with no compile and no measurement") {
    const FakeMachine fakes("noise:percent=0.5:seed=3");
    const Scratch scratch;
    auto cache = scratch.cache();
    const TuneResult first = tune_all(cache, {1, 64});
    CHECK(first.stopped == StopReason::finished);
    CHECK(first.compiles > 10);
    for (const ProblemResult& problem : first.problems) {
        CAPTURE(problem.failure);
        REQUIRE(problem.winner);
        CHECK(problem.winner->provenance == cache::Provenance::measured);
        CHECK(problem.failed == 0);
    }
    const TuneResult again = tune_all(cache, {1, 64});
    CHECK(again.compiles == 0);
    CHECK(again.measurements == 0);
    CHECK(again.problems[0].reused);
}

TEST_CASE(
    "faults, hangs, wrong results, spills and failing compiles end with a winner that is none of them") {
    const FakeMachine fakes(
        "launch:match=" + words_of(ranked_candidate(0)) +
        ":fail=700;launch:match=" + words_of(ranked_candidate(1)) +
        ":hang;launch:match=kernel=hone_compare:previous=" + words_of(ranked_candidate(2)) +
        ":write=6:offset=16:value=1;compile:match=" + words_of(ranked_candidate(3)) +
        ":spill=64;compile:match=" + words_of(ranked_candidate(4)) + ":fail");
    const Scratch scratch;
    auto cache = scratch.cache();
    const TuneResult result = tune_all(cache, {64});
    REQUIRE(result.problems[0].winner);
    const auto fallback_candidate = fallback(norm_problem(64), *representative_device({9, 0, true}));
    const TrialStatus expected[] = {TrialStatus::crashed, TrialStatus::timed_out, TrialStatus::wrong_result,
                                    TrialStatus::over_limits, TrialStatus::compile_failed};
    for (std::size_t i = 0; i < std::size(expected); ++i) {
        const std::string name = to_string(ranked_candidate(i));
        CAPTURE(name);
        CHECK(result.problems[0].winner->candidate != name);
        const auto trial = trial_named(cache, name);
        REQUIRE(trial);
        if (fallback_candidate == ranked_candidate(i) && expected[i] == TrialStatus::over_limits) continue;
        CHECK(cache::name(trial->status) == cache::name(expected[i]));
        CHECK(trial->detail != "");
    }
    CHECK(cache.in_flight().empty());
}
