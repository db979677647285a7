#include "tuner/search/shortlist.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <iterator>

#include "cache/bundle.h"
#include "tests/tuner/made_up_measurer.h"
#include "tuner/search/knowledge.h"
#include "tuner/search/predictions.h"

using namespace hone;
using namespace hone::tuner;

namespace {

std::vector<Candidate> space() {
    std::vector<Candidate> candidates;
    for (const RankedCandidate& ranked : ranked_space(test::norm_problem(64), test::made_up_device().traits))
        candidates.push_back(ranked.candidate);
    return candidates;
}

/// One of the space that differs from `from` in so many tunables, and is of its variant.
Candidate differing(const Candidate& from, int tunables) {
    for (const Candidate& candidate : space()) {
        if (candidate.variant == from.variant && difference(candidate, from) == tunables) return candidate;
    }
    FAIL("no candidate differs so");
    return from;
}

std::vector<Candidate> chosen(const std::vector<MeasuredKernel>& measured, std::size_t limit) {
    std::vector<Candidate> candidates;
    for (const MeasuredKernel& kernel : shortlist(measured, limit)) candidates.push_back(kernel.candidate);
    return candidates;
}

cache::Trial trial_of(const Candidate& candidate, double us, bool winner) {
    cache::Trial trial;
    trial.key = tuning_key(test::norm_problem(64), test::made_up_device().gpu);
    trial.candidate = to_string(candidate);
    trial.stage = cache::Stage::raced;
    trial.timing = {.median_us = us, .p10_us = us, .p90_us = us, .samples = 10};
    trial.winner = winner;
    return trial;
}

}  // namespace

TEST_CASE(
    "a shortlist has who is within 10 % of the fastest, which comes first, and no more than asked for") {
    const std::vector<Candidate> all = space();
    const std::vector<MeasuredKernel> measured{{all[0], 110.5}, {all[1], 109.5}, {all[2], 100}};
    CHECK(chosen(measured, 8) == std::vector{all[2], all[1]});
    CHECK(chosen(measured, 1) == std::vector{all[2]});
    CHECK(chosen({}, 8).empty());
}

TEST_CASE("a tunable in which one differs from all before it is worth 1 %, up to three of them") {
    const Candidate first = space().front();
    const Candidate near = differing(first, 1);
    const Candidate far = differing(first, 3);
    CHECK(chosen({{first, 100}, {near, 101}, {far, 102.9}}, 2) == std::vector{first, far});
    CHECK(chosen({{first, 100}, {near, 101}, {far, 103.2}}, 2) == std::vector{first, near});
    CHECK(difference(first, first) == 0);
}

TEST_CASE("contenders are of the winner's race: measured like it, each once, without it") {
    const std::vector<Candidate> all = space();
    const cache::Trial winner = trial_of(all[0], 100, true);
    cache::Trial other_driver = trial_of(all[1], 100, false);
    other_driver.toolchain.driver = "1";
    std::vector<cache::Trial> trials{winner, other_driver, trial_of(all[2], 104, false),
                                     trial_of(all[2], 103, false), trial_of(all[3], 150, false)};
    const std::vector<cache::Trial> found = contenders(winner, trials);
    REQUIRE(found.size() == 1);
    CHECK(found[0].candidate == to_string(all[2]));
    CHECK(found[0].timing.median_us == 103);
    for (std::size_t i = 4; i < 24; ++i) trials.push_back(trial_of(all[i], 105, false));
    CHECK(contenders(winner, trials).size() == cache::most_contenders);
}

TEST_CASE("who ties with the winner is among its contenders, however alike it is") {
    const Candidate first = space().front();
    cache::Trial winner = trial_of(first, 100, true);
    winner.stage = cache::Stage::final_round;
    std::vector<cache::Trial> trials{winner};
    for (std::size_t i = 1; i <= 12; ++i) trials.push_back(trial_of(space()[space().size() - i], 99, false));
    cache::Trial alike = trial_of(differing(first, 1), 100.9, false);
    alike.stage = cache::Stage::final_round;
    trials.push_back(alike);
    const std::vector<cache::Trial> found = contenders(winner, trials);
    REQUIRE(found.size() == cache::most_contenders);
    CHECK(found.front() == alike);
}

TEST_CASE("of a pool of predictions the best are a shortlist, the first prediction first") {
    const DeviceTraits& traits = test::made_up_device().traits;
    const Problem problem = test::norm_problem(64);
    const std::vector<RankedCandidate> ranked = ranked_space(problem, traits);
    std::vector<MeasuredKernel> pool;
    for (std::size_t i = 0; i < 16; ++i) pool.push_back({ranked[i].candidate, ranked[i].predicted_us});
    const std::vector<Candidate> unlike = best_predictions(problem, traits, {.best = 4, .pool = 16});
    CHECK(unlike == chosen(pool, 4));
    CHECK(unlike.front() == ranked.front().candidate);
    const std::vector<Candidate> first = best_predictions(problem, traits, {.best = 4});
    for (std::size_t i = 0; i < 4; ++i) CHECK(first[i] == ranked[i].candidate);
    CHECK(unlike != first);
}

TEST_CASE("of a pool of each variant's predictions its few are a shortlist, and not those beyond the limit") {
    const DeviceTraits& traits = test::made_up_device().traits;
    const Problem problem = test::norm_problem(64);
    const std::vector<RankedCandidate> ranked = ranked_space(problem, traits);
    const double limit = 1.25;
    std::vector<Candidate> expected;
    std::vector<Candidate> first;
    for (const Variant* variant : problem.family->variants) {
        std::vector<MeasuredKernel> pool;
        for (const RankedCandidate& next : ranked) {
            const bool is_close = next.predicted_us <= limit * ranked.front().predicted_us;
            if (next.candidate.variant == variant && is_close && pool.size() < 8)
                pool.push_back({next.candidate, next.predicted_us});
        }
        std::ranges::move(chosen(pool, 2), std::back_inserter(expected));
        for (std::size_t i = 0; i < std::min<std::size_t>(pool.size(), 2); ++i)
            first.push_back(pool[i].candidate);
    }
    REQUIRE(expected != first);
    CHECK(best_predictions(problem, traits,
                           {.of_each_variant = 2, .variant_limit = limit, .variant_pool = 8}) == expected);
    CHECK(best_predictions(problem, traits, {.of_each_variant = 2, .variant_limit = limit}) == first);
}
