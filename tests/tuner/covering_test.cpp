// Few kernels for all sizes of a static problem, from races to winners: made-up times, and a recorded sweep.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include <fmt/format.h>

#include "tests/support/scratch.h"
#include "tests/tuner/made_up_measurer.h"
#include "tuner/measure/recorded.h"

using namespace hone;
using namespace hone::tuner;
using hone::test::Scratch;

namespace {

using test::never;

/// So many candidates that may run at all these sizes; none is the default of one.
std::vector<Candidate> candidates(const std::vector<std::int64_t>& rows, std::size_t count) {
    const DeviceTraits traits = test::made_up_device().traits;
    std::vector<Candidate> found;
    for (const RankedCandidate& ranked : ranked_space(test::norm_problem(rows.front()), traits)) {
        const bool fits = std::ranges::all_of(rows, [&](std::int64_t size) {
            const Problem problem = test::norm_problem(size);
            return allowed(problem, ranked.candidate, traits) &&
                   fallback(problem, traits) != ranked.candidate;
        });
        if (fits && found.size() < count) found.push_back(ranked.candidate);
    }
    REQUIRE(found.size() == count);
    return found;
}

constexpr double not_recorded = 0;

/// A recording in which kernel k takes us[i][k] at rows[i].
Recording recording(const std::vector<std::int64_t>& rows, const std::vector<std::vector<double>>& us) {
    Recording made{.device = test::made_up_device(), .problems = {}};
    const std::vector<Candidate> kernels = candidates(rows, us.front().size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
        RecordedProblem& problem = made.problems[to_string(test::norm_problem(rows[i]))];
        for (std::size_t k = 0; k < kernels.size(); ++k) {
            if (us[i][k] != not_recorded) problem.candidates[to_string(kernels[k])].us = {us[i][k]};
        }
    }
    return made;
}

TuneResult tune_replayed(const Recording& recording, cache::Cache& cache, TuneOptions options) {
    Workload list{.name = "test", .problems = {}, .tuned = {}, .without_family = {}};
    for (const auto& [text, _] : recording.problems) list.problems.push_back(*parse_problem(text));
    ReplayMeasurer measurer(recording);
    test::NoImages images;
    return tune(list, options, measurer, images, cache, {}, never);
}

TuneOptions at_most(std::size_t kernels) {
    return {.effort = Effort::exhaustive, .budget = {}, .kernels = kernels};
}

std::set<std::string> winners_in(const cache::Cache& cache) {
    std::set<std::string> kernels;
    for (const cache::Trial& winner : cache.winners()) kernels.insert(winner.candidate);
    return kernels;
}

/// At 1 row the first kernel is best, at 4096 the last, and the middle one is 4 % behind both.
Recording compromise() { return recording({1, 4096}, {{10, 10.4, 14}, {140, 104, 100}}); }

}  // namespace

TEST_CASE("one kernel for all sizes is the one that loses least, and the loss is said") {
    const Scratch scratch;
    auto cache = scratch.cache();
    const TuneResult result = tune_replayed(compromise(), cache, at_most(1));
    const std::string middle = to_string(candidates({1, 4096}, 3)[1]);
    REQUIRE(result.covers.size() == 1);
    CHECK(result.covers[0].sizes == 2);
    CHECK(result.covers[0].kernels == std::vector<std::string>{middle});
    CHECK(result.covers[0].mean_loss == doctest::Approx(0.04));
    CHECK(result.covers[0].worst_loss == doctest::Approx(0.04));
    CHECK(result.covers[0].failure.empty());
    CHECK(result.covers[0].measurements == 6);
    for (const ProblemResult& problem : result.problems) {
        CHECK(problem.winner->candidate == middle);
        CHECK(problem.winner->winner);
        CHECK(problem.winner->provenance == cache::Provenance::replayed);
    }
    CHECK(winners_in(cache) == std::set{middle});
}

TEST_CASE("as many kernels as win cost nothing, and races decide as ever") {
    const Scratch scratch;
    auto cache = scratch.cache();
    const TuneResult result = tune_replayed(compromise(), cache, at_most(2));
    REQUIRE(result.covers.size() == 1);
    CHECK(result.covers[0].kernels.size() == 2);
    CHECK(result.covers[0].mean_loss == 0);
    CHECK(result.covers[0].worst_loss == 0);
    CHECK(result.covers[0].measurements == 0);
    const std::vector<Candidate> kernels = candidates({1, 4096}, 3);
    CHECK(winners_in(cache) == std::set{to_string(kernels[0]), to_string(kernels[2])});
}

TEST_CASE(
    "the same command again measures nothing and says no loss that it does not know; fewer kernels measure") {
    const Scratch scratch;
    auto cache = scratch.cache();
    const Recording sweep = compromise();
    (void)tune_replayed(sweep, cache, at_most(2));
    const TuneResult again = tune_replayed(sweep, cache, at_most(2));
    CHECK(again.measurements == 0);
    CHECK_FALSE(again.covers.at(0).mean_loss);
    const TuneResult fewer = tune_replayed(sweep, cache, at_most(1));
    CHECK(fewer.covers.at(0).mean_loss == doctest::Approx(0.04));
    CHECK(fewer.measurements == 6);
    CHECK(winners_in(cache).size() == 1);
    const TuneResult last = tune_replayed(sweep, cache, at_most(1));
    CHECK(last.measurements == 0);
    CHECK(last.covers.at(0).kernels == fewer.covers.at(0).kernels);
}

TEST_CASE("without a limit nothing is covered") {
    const Scratch scratch;
    auto cache = scratch.cache();
    const TuneResult result =
        tune_replayed(compromise(), cache, {.effort = Effort::exhaustive, .budget = {}});
    CHECK(result.covers.empty());
    CHECK(winners_in(cache).size() == 2);
}

TEST_CASE("a kernel without a time at some size does not serve it, and who cannot be served is said") {
    const Scratch scratch;
    auto cache = scratch.cache();
    const Recording sweep = recording({1, 4096}, {{10, 12, not_recorded}, {not_recorded, not_recorded, 100}});
    const TuneResult result = tune_replayed(sweep, cache, at_most(1));
    REQUIRE(result.covers.size() == 1);
    CHECK(result.covers[0].failure.find("no 1 of the 2 kernels") != std::string::npos);
    CHECK(result.covers[0].kernels.empty());
    CHECK_FALSE(result.covers[0].mean_loss);
    CHECK(winners_in(cache).size() == 2);
}

TEST_CASE(
    "a recorded sweep of norms: never more kernels than asked for, and the loss falls with their number") {
    Recording sweep = read_recording(HONE_SOURCE_DIR "/configs/recorded/h200-sxm.jsonl");
    std::erase_if(sweep.problems, [](const auto& entry) {
        return !entry.first.starts_with("rmsnorm dtype=bf16 output=same residual=no ");
    });
    REQUIRE(sweep.problems.size() == 14);
    double before = std::numeric_limits<double>::infinity();
    std::string losses;
    for (std::size_t limit = 1; before > 0; ++limit) {
        REQUIRE(limit <= sweep.problems.size());
        const Scratch scratch;
        auto cache = scratch.cache();
        TuneOptions options = at_most(limit);
        options.effort = Effort::standard;
        const TuneResult result = tune_replayed(sweep, cache, options);
        REQUIRE(result.covers.size() == 1);
        const CoverResult& cover = result.covers[0];
        CHECK(cover.failure.empty());
        CHECK(cover.kernels.size() <= limit);
        const std::set<std::string> winners = winners_in(cache);
        CHECK(winners == std::set(cover.kernels.begin(), cover.kernels.end()));
        REQUIRE(cover.mean_loss);
        CHECK(*cover.mean_loss <= before);
        CHECK(*cover.mean_loss <= *cover.worst_loss);
        before = *cover.mean_loss;
        losses += fmt::format(" {}: {:.1f}/{:.1f}", limit, *cover.mean_loss * 100, *cover.worst_loss * 100);
    }
    MESSAGE("kernels, mean and worst loss in %:", losses);
}
