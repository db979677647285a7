// What quick effort does after every problem has been raced: kernels that did well elsewhere in the run, and
// neighbours of the winner, against the winner.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "tests/support/scratch.h"
#include "tests/tuner/made_up_measurer.h"
#include "tests/tuner/scripted_race.h"
#include "tuner/search/second_look.h"

using namespace hone;
using namespace hone::tuner;
using hone::test::MadeUpMeasurer;
using hone::test::Scratch;

namespace {

using test::never;

TuneResult tune_sizes(const std::vector<std::int64_t>& rows, MadeUpMeasurer& measurer, cache::Cache& cache,
                      Effort effort = Effort::quick, const std::atomic<bool>& stop = never) {
    test::NoImages images;
    return tune(test::norm_workload(rows), {.effort = effort, .budget = {}}, measurer, images, cache, {},
                stop);
}

std::vector<Candidate> neighbours_of(const Candidate& candidate, const Problem& problem) {
    std::vector<Candidate> near;
    for (const RankedCandidate& other : ranked_space(problem, test::made_up_device().traits)) {
        if (difference(other.candidate, candidate) == 1) near.push_back(other.candidate);
    }
    return near;
}

Candidate winner_of(const ProblemResult& result) {
    return *parse_candidate(*result.problem.family, result.winner->candidate);
}

std::set<std::string> tried_at(const cache::Cache& cache, const Problem& problem) {
    std::set<std::string> names;
    for (const cache::Trial& trial : cache.trials()) {
        if (trial.key.dynamic_fields == dynamic_text(problem)) names.insert(trial.candidate);
    }
    return names;
}

/// 20 us, and 10 for one candidate.
std::function<double(const std::string&)> fastest_is(const std::string& name) {
    return [name](const std::string& other) { return other == name ? 10.0 : 20.0; };
}

}  // namespace

TEST_CASE(
    "the winner's neighbour that no race has seen is found in the second look, and by no other effort's "
    "first") {
    const Problem problem = test::norm_problem(64);
    const Scratch before;
    auto first_cache = before.cache();
    MadeUpMeasurer measurer;
    const TuneResult first = tune_sizes({64}, measurer, first_cache, Effort::known);
    const Candidate winner = winner_of(first.problems.at(0));
    const std::vector<Candidate> near = neighbours_of(winner, problem);
    REQUIRE(near.size() > 2);

    int found = 0;
    for (const Candidate& candidate : near) {
        const Scratch scratch;
        auto cache = scratch.cache();
        measurer.true_us = [&](const std::string& name) {
            return name == to_string(candidate) ? 10.0 : name == to_string(winner) ? 15.0 : 20.0;
        };
        const TuneResult result = tune_sizes({64}, measurer, cache);
        const bool won = result.problems.at(0).winner->candidate == to_string(candidate);
        CHECK(won == tried_at(cache, problem).contains(to_string(candidate)));
        if (!won) continue;
        ++found;
        CHECK(cache.winners().at(0).candidate == to_string(candidate));
        CHECK(result.problems.at(0).fallback);
        CHECK(cache.in_flight().empty());
    }
    CHECK(found >= 2);
}

TEST_CASE("a kernel that wins at other sizes is tried where it was not thought of") {
    const Scratch scratch;
    auto cache = scratch.cache();
    MadeUpMeasurer measurer;
    const std::vector<std::int64_t> sizes{16, 64, 256, 1024};
    (void)tune_sizes(sizes, measurer, cache);
    int found = 0;
    for (const std::string& name : tried_at(cache, test::norm_problem(1024))) {  // which has its turn first
        const Candidate candidate = *parse_candidate(*test::norm_problem(1024).family, name);
        const auto tried_first = [&](std::int64_t rows) {
            return tried_at(cache, test::norm_problem(rows)).contains(name);
        };
        if (tried_first(16)) continue;
        if (!allowed(test::norm_problem(16), candidate, measurer.device().traits)) continue;
        const Scratch fresh;
        auto other_cache = fresh.cache();
        measurer.true_us = fastest_is(name);
        const TuneResult result = tune_sizes(sizes, measurer, other_cache);
        found += result.problems.at(0).winner->candidate == name ? 1 : 0;
    }
    CHECK(found > 0);
}

TEST_CASE("a winner that nobody beats by the band keeps its place, its final and who tied with it") {
    const Scratch scratch;
    auto cache = scratch.cache();
    MadeUpMeasurer measurer;  // all take 10 us
    const TuneResult result = tune_sizes({64, 1024}, measurer, cache);
    for (const ProblemResult& problem : result.problems) {
        REQUIRE(problem.winner);
        const cache::Ties ties = cache::ties_of(*problem.winner, cache.trials());
        std::set<std::string> raced;  // in both looks
        for (const cache::Trial& trial : cache.trials()) {
            const bool is_here = trial.key.dynamic_fields == dynamic_text(problem.problem);
            if (is_here && trial.stage != cache::Stage::screened) raced.insert(trial.candidate);
        }
        CHECK(ties.others.size() == raced.size() - 1);
        CHECK(problem.ties.others == ties.others);
    }
    CHECK(cache.in_flight().empty());
    CHECK(cache.winners().size() == 2);
    int winners = 0;
    for (const cache::Trial& trial : cache.trials()) winners += trial.winner ? 1 : 0;
    CHECK(winners == 2);
}

TEST_CASE("a problem that was raced on such a GPU before is looked at once, one of another GPU's twice") {
    const Scratch scratch;
    auto cache = scratch.cache();
    MadeUpMeasurer measurer;
    (void)tune_sizes({64}, measurer, cache);
    REQUIRE(measurer.problems == 2);
    std::vector<cache::Trial> before = cache.trials();
    std::erase_if(before, [](const cache::Trial& trial) { return trial.stage == cache::Stage::screened; });
    std::ranges::stable_sort(before, {}, [](const cache::Trial& trial) { return !trial.winner; });
    for (const bool is_here : {true, false}) {
        TuneOptions options{.effort = Effort::quick, .budget = {}};
        std::vector<cache::Trial> known;
        for (cache::Trial trial : before) {
            if (!is_here) trial.key.gpu.name = "another";
            known.push_back(trial);
        }
        options.lower_trials = [&] { return known; };
        const Scratch fresh;
        auto other_cache = fresh.cache();
        test::NoImages images;
        measurer.problems = 0;
        (void)tune(test::norm_workload({64}), options, measurer, images, other_cache, {}, never);
        CHECK(measurer.problems == (is_here ? 1 : 2));
    }
}

TEST_CASE("whichever of two that are level wins, the same neighbours are looked at") {
    const Problem problem = test::norm_problem(64);
    const Scratch before;
    auto first_cache = before.cache();
    MadeUpMeasurer measurer;
    (void)tune_sizes({64}, measurer, first_cache);
    std::vector<std::string> finalists;
    for (const cache::Trial& trial : first_cache.trials()) {
        if (trial.stage == cache::Stage::final_round && !trial.is_default)
            finalists.push_back(trial.candidate);
    }
    REQUIRE(finalists.size() >= 2);
    std::vector<std::set<std::string>> tried;
    std::set<std::string> winners;
    for (const auto& [first_us, second_us] : {std::pair(10.0, 10.15), std::pair(10.15, 10.0)}) {
        const Scratch scratch;
        auto cache = scratch.cache();
        measurer.true_us = [&](const std::string& name) {
            return name == finalists[0] ? first_us : name == finalists[1] ? second_us : 20.0;
        };
        winners.insert(tune_sizes({64}, measurer, cache).problems.at(0).winner->candidate);
        tried.push_back(tried_at(cache, problem));
    }
    CHECK(winners == std::set<std::string>{finalists[0], finalists[1]});
    CHECK(tried[0] == tried[1]);
}

TEST_CASE("who was beaten narrowly runs again, and wins where only a disturbed race was against it") {
    const Scratch before;
    auto first_cache = before.cache();
    MadeUpMeasurer measurer;
    std::set<std::string> others;  // of the first race
    measurer.true_us = [&](const std::string& name) {
        if (measurer.problems == 1) others.insert(name);
        return 10.0;
    };
    const TuneResult first = tune_sizes({64}, measurer, first_cache);
    const std::string winner = first.problems.at(0).winner->candidate;
    others.erase(winner);
    const std::string beaten = *others.begin();
    for (const double at_first : {10.7, 10.9}) {  // 7 and 9 % behind
        CAPTURE(at_first);
        const Scratch scratch;
        auto cache = scratch.cache();
        MadeUpMeasurer disturbed;
        disturbed.true_us = [&](const std::string& name) {
            if (name == beaten) return disturbed.problems == 1 ? at_first : 8.0;
            return name == winner ? 10.0 : 20.0;
        };
        const TuneResult result = tune_sizes({64}, disturbed, cache);
        const bool is_narrow = at_first < 10.8;
        CHECK(result.problems.at(0).winner->candidate == (is_narrow ? beaten : winner));
        CHECK(disturbed.verified[beaten] == (is_narrow ? 2 : 1));
    }
}

TEST_CASE("calls over 100 us meet who was beaten narrowly again, and nobody new") {
    for (const double us : {99.0, 101.0}) {
        const Scratch scratch;
        auto cache = scratch.cache();
        MadeUpMeasurer measurer;
        std::size_t tried_at_first = 0;
        measurer.true_us = [&](const std::string&) {
            if (measurer.problems == 1) tried_at_first = measurer.verified.size();
            return us;
        };
        (void)tune_sizes({64}, measurer, cache);
        CHECK(measurer.problems == 2);
        CHECK((measurer.verified.size() > tried_at_first) == (us < 100));
    }
}

TEST_CASE("other efforts look once") {
    const Scratch scratch;
    auto cache = scratch.cache();
    MadeUpMeasurer measurer;
    for (const Effort effort : {Effort::known, Effort::standard}) {
        measurer.problems = 0;
        (void)tune_sizes({64, effort == Effort::known ? 128 : 256}, measurer, cache, effort);
        CHECK(measurer.problems <= 2);
    }
    measurer.problems = 0;
    (void)tune_sizes({512, 2048}, measurer, cache);
    CHECK(measurer.problems == 4);
}

TEST_CASE("a winner that computes wrong numbers when it is looked at again loses its place") {
    const Scratch scratch;
    auto cache = scratch.cache();
    MadeUpMeasurer measurer;
    measurer.true_us = [](const std::string& name) {
        return 10.0 + static_cast<double>(std::hash<std::string>{}(name) % 2000) / 100.0;
    };
    std::string first_winner;
    measurer.on_verify = [&](const std::string& name) {
        if (measurer.problems == 2 && first_winner.empty()) {
            first_winner = name;  // the second look begins with the winner
            measurer.failures[name] = {.status = cache::TrialStatus::wrong_result, .detail = "planted"};
        }
    };
    const TuneResult result = tune_sizes({64}, measurer, cache);
    REQUIRE_FALSE(first_winner.empty());
    REQUIRE(result.problems.at(0).winner);
    CHECK(result.problems[0].winner->candidate != first_winner);
    CHECK(cache.winners().at(0).candidate == result.problems[0].winner->candidate);
    CHECK(measurer.problems == 4);  // the challengers' final, then raced once more, without it
}

TEST_CASE("a run that is stopped in its second look has finished") {
    const Scratch scratch;
    auto cache = scratch.cache();
    MadeUpMeasurer measurer;
    std::atomic<bool> stop{false};
    measurer.on_verify = [&](const std::string&) {
        if (measurer.problems == 3) stop = true;
    };
    const TuneResult result = tune_sizes({64, 1024}, measurer, cache, Effort::quick, stop);
    CHECK(result.stopped == StopReason::finished);
    CHECK(measurer.problems == 3);
    CHECK(cache.winners().size() == 2);
    CHECK(cache.in_flight().empty());
}

TEST_CASE("a challenge ends for the incumbent without a winner, else with all that a race ends with") {
    struct Case {
        double challenger_us;
        bool wins;
    };
    for (const Case& one : {Case{16, false}, Case{15.5, false}, Case{14, true}, Case{20, false}}) {
        CAPTURE(one.challenger_us);
        test::ScriptedRace race({{.us = 16, .is_incumbent = true}, {.us = one.challenger_us}});
        for (std::size_t i = 0; i < 2; ++i) race.enter(i);
        const std::optional<Decision> decision = race.challenge();
        CHECK(decision.has_value() == one.wins);
        const bool is_said = std::ranges::any_of(
            race.heard, [](const std::string& heard) { return heard.ends_with(", wins"); });
        CHECK(is_said == one.wins);
        CHECK(race.begun_anew == (one.wins ? 1 : 0));
        if (decision) CHECK(decision->winner == 1);
    }
}

TEST_CASE("a challenger has to be ahead in the heat, and again in a final in other buffers") {
    const auto challenge = [](const std::vector<double>& in_the_final, bool can_begin_anew) {
        const test::Answer again{.us = in_the_final};
        test::ScriptedRace race(
            {{.us = 16, .is_incumbent = true}, {.us = 14, .answers = {{}, {}, again, again}}});
        race.can_begin_anew = can_begin_anew;
        for (std::size_t i = 0; i < 2; ++i) race.enter(i);
        const bool wins = race.challenge().has_value();
        CHECK(race.begun_anew == 1);
        if (can_begin_anew)
            CHECK(race.standing(1).us.front() == in_the_final.front());  // those of the heat are gone
        return wins;
    };
    CHECK(challenge({14}, true));
    CHECK_FALSE(challenge({14}, false));
    CHECK_FALSE(challenge({15.5}, true));
    CHECK_FALSE(challenge({16.5}, true));
}
