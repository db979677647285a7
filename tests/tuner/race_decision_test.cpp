// Who wins a race: the order in which those win that are level, the incumbent's and the default's advantage,
// the runner-up, a race that is stopped, and what observers hear.
#include <doctest/doctest.h>

#include "tests/tuner/scripted_race.h"

using namespace hone;
using namespace hone::tuner;
using namespace hone::test;
using cache::TrialStatus;

namespace {

std::size_t winner(const std::vector<Runner>& runners) {
    const std::optional<std::size_t> index = ScriptedRace(runners).run().winner;
    REQUIRE(index);
    return *index;
}

/// The default takes this after the screening, where another one takes 16 us.
bool default_wins(const std::vector<double>& us) {
    Runner fallback = in_final(us);
    fallback.is_default = true;
    return winner({fallback, {}}) == 0;
}

Decision stopped_after(int launches, const std::vector<Runner>& runners) {
    ScriptedRace race(runners);
    race.stop_after = launches;
    return race.run();
}

}  // namespace

TEST_CASE("the first in the order of entry that is within the band of the fastest wins, whoever is faster") {
    CHECK(winner({{.us = 17}, {.us = 16.5}, {.us = 16}}) == 0);
    CHECK(winner({{.us = 17.01}, {.us = 16.5}, {.us = 16}}) == 1);
    CHECK(winner({{.us = 17.01}, {.us = 17.02}, {.us = 16}}) == 2);
    CHECK(winner({{.us = 16}, {.us = 16.5, .registers = 10}}) == 0);
    // Each is within the band of the next, but the fastest is what counts.
    CHECK(winner({{.us = 17.5}, {.us = 17.25}, {.us = 17}, {.us = 16.5}, {.us = 16}}) == 2);
}

TEST_CASE("who is not surely slower on the mean of its replays holds") {
    CHECK(winner({in_final({20, 15}), {}}) == 0);          // the interval reaches down to the fastest
    CHECK(winner({in_final({18, 18, 18, 16}), {}}) == 1);  // two levels, the lower one as fast as the fastest
    CHECK(winner({in_final({18, 18}), in_final({16, 17})}) == 1);
}

TEST_CASE("however unsure that is, who is far behind on the mean does not hold") {
    RaceRules rules = exact_rules();
    const Runner of_two_levels = in_final({15, 21, 21, 15});  // 18 on the mean
    for (const auto& [limit, winner] : {std::pair(1.5, 0), std::pair(1.1, 1)}) {
        rules.doubt_limit = limit;
        ScriptedRace race({of_two_levels, {.us = 16}}, rules);
        CHECK(race.run().winner == static_cast<std::size_t>(winner));
    }
}

TEST_CASE("who is level in its fastest tenth holds where the clock fell during the heat, and only there") {
    const Runner as_fast_at_first = in_final({16, 18, 18, 18});
    const Runner falling = in_final({16, 16.5, 16.5, 16.5});
    const std::vector<Runner> all_fall{as_fast_at_first, falling, falling};
    CHECK(winner(all_fall) == 0);
    CHECK(winner({as_fast_at_first, {}, {}}) == 1);
    RaceRules rules = exact_rules();
    rules.least_power_us = 17;  // a call is too short to draw that much power
    CHECK(ScriptedRace(all_fall, rules).run().winner.value_or(9) == 1);
    rules = exact_rules();
    rules.clock_fall = 1.0 / 8;
    CHECK(ScriptedRace(all_fall, rules).run().winner.value_or(9) == 1);
}

TEST_CASE("the default keeps its place up to the edge of the band, whatever lies between") {
    CHECK(default_wins({16.99}));
    CHECK(default_wins({17}));
    CHECK_FALSE(default_wins({17.01}));
    CHECK(default_wins({20, 15}));  // its noise is as wide as its distance
    CHECK_FALSE(default_wins({18, 18, 18, 16}));
    CHECK(winner({{.us = 17, .is_default = true, .registers = 90}, {.us = 16, .registers = 10}}) == 0);
}

TEST_CASE("the incumbent stands before the default, and both before all others, whenever they entered") {
    const Runner fallback{.us = 16.5, .is_default = true};
    CHECK(winner({{.us = 17, .is_incumbent = true}, fallback, {.us = 16}}) == 0);
    CHECK(winner({{.us = 16}, fallback, {.us = 17, .is_incumbent = true}}) == 2);
    CHECK(winner({{.us = 17.01, .is_incumbent = true}, {.us = 16}, fallback}) == 2);
    CHECK(winner({{.us = 30, .is_incumbent = true}, fallback, {.us = 16}}) == 1);
    CHECK(winner({{.us = 17.01, .is_incumbent = true}, {.us = 17.01, .is_default = true}, {.us = 16}}) == 2);
}

TEST_CASE("who ran beside the incumbent has a ratio to its times, round by round") {
    test::ScriptedRace race({{.us = 16, .is_incumbent = true}, in_final({17, 17, 17, 34}), {.us = 30}});
    (void)race.run();
    CHECK(race.standing(0).incumbent_ratio == 1);
    CHECK(race.standing(1).incumbent_ratio == 17.0 / 16);
    CHECK(race.standing(2).incumbent_ratio == 0);  // screened alone
    ScriptedRace without({{.us = 16}, {.us = 17}});
    (void)without.run();
    CHECK(without.standing(1).incumbent_ratio == 0);
}

TEST_CASE("the runner-up is the fastest of the final besides the winner, in any order of entry") {
    const Decision slow_first = ScriptedRace({{.us = 17.75}, {.us = 16}, {.us = 17.5}, {.us = 17.6}}).run();
    CHECK(slow_first.winner == 1);
    CHECK(slow_first.runner_up == 2);
    CHECK(slow_first.complete);
    const Decision kept = ScriptedRace({{.us = 17, .is_default = true}, {.us = 16.5}, {.us = 16}}).run();
    CHECK(kept.winner == 0);
    CHECK(kept.runner_up == 2);
    const Decision first = ScriptedRace({{.us = 16}, {.us = 17.75}, {.us = 17.5}}).run();
    CHECK(first.winner == 0);
    CHECK(first.runner_up == 2);
    CHECK_FALSE(ScriptedRace({{.us = 16}, {.us = 30}}).run().runner_up);
}

TEST_CASE("what slows a round down for all neither blurs the final nor makes a tie") {
    ScriptedRace race({in_final({17.5, 35}), in_final({16, 32})});
    CHECK(race.run().winner == 1);
    CHECK(race.rounds.empty());
}

TEST_CASE("a race that is stopped prefers the default within the band, else the fastest") {
    const std::vector<Runner> others{{.us = 17, .is_default = true}, {.us = 16.5}, {.us = 16}};
    Decision decision = stopped_after(3, others);
    CHECK(decision.winner == 0);
    CHECK(decision.runner_up == 2);
    CHECK_FALSE(decision.complete);
    decision = stopped_after(3, {{.us = 17.01, .is_default = true}, {.us = 16.5}, {.us = 16}});
    CHECK(decision.winner == 2);
    CHECK(decision.runner_up == 1);
    decision = stopped_after(3, {{.us = 16.5}, {.us = 16}, {.us = 16.25}});
    CHECK(decision.winner == 1);
    CHECK(decision.runner_up == 2);
    decision = stopped_after(1, {{.us = 16}});
    CHECK(decision.winner == 0);
    CHECK_FALSE(decision.runner_up);
    CHECK_FALSE(stopped_after(1, {{.verified = TrialStatus::crashed}}).winner);
}

TEST_CASE("a race that is stopped measures no more: before the heat, or after it") {
    const std::vector<Runner> runners{{.us = 16}, {.us = 24.01}, {.us = 20}};
    ScriptedRace screened(runners);
    screened.stop_after = 3;
    CHECK(screened.run().runner_up == 2);
    CHECK(screened.heat.empty());
    ScriptedRace heated(runners);
    heated.stop_after = 4;
    const Decision decision = heated.run();
    CHECK_FALSE(decision.complete);
    CHECK(decision.runner_up == 2);
    CHECK(heated.heat.size() == 2);
    CHECK(heated.finalists.empty());
}

TEST_CASE("where a run ends before the heat has a time of anybody, the screening decides") {
    const auto heat_without_times = [](double us) {
        return Runner{.us = us, .answers = {{}, {.us = std::vector<double>{}}}};
    };
    const std::vector<Runner> runners{heat_without_times(20), heat_without_times(16), heat_without_times(18)};
    ScriptedRace stopped(runners);
    stopped.stop_after = 4;  // in the heat
    const Decision decision = stopped.run();
    CHECK(stopped.heat.size() == 3);
    CHECK(decision.winner == 1);
    CHECK_FALSE(decision.complete);
    CHECK(stopped.standing(1).stage == cache::Stage::screened);
    CHECK_FALSE(ScriptedRace(runners).run().winner);  // it goes on: who has no times has lost
}

TEST_CASE("observers hear of each launch before it and of each stage's end, and of the winner once") {
    const std::vector<Runner> runners{{.us = 20.5, .is_default = false},
                                      {.us = 17},
                                      {.us = 16},
                                      {.us = 30},
                                      {.verified = TrialStatus::wrong_result}};
    ScriptedRace race(runners);
    (void)race.run();
    const std::vector<std::string> screening{"launch 0", "0 in screening",
                                             "launch 1", "1 in screening",
                                             "launch 2", "2 in screening",
                                             "launch 3", "3 in screening",
                                             "launch 4", "4 failed dropped in screening"};
    std::vector<std::string> all = screening;
    for (const char* line : {"launch 2", "launch 1", "launch 0", "2 in heat", "1 in heat", "0 in heat",
                             "launch 2", "launch 1", "1 in final, wins", "2 in final"}) {
        all.emplace_back(line);
    }
    CHECK(race.heard == all);
    ScriptedRace stopped(runners);
    stopped.stop_after = 5;
    (void)stopped.run();
    std::vector<std::string> early = screening;
    early.emplace_back("2 in screening, wins");
    CHECK(stopped.heard == early);
}
