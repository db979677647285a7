// Who gets past the screening and the heat of a race, what both cost, and what is no time at all.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "tests/tuner/scripted_race.h"

using namespace hone;
using namespace hone::tuner;
using namespace hone::test;
using cache::TrialStatus;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

bool is_dropped_at_entry(const Runner& runner, const Runner& pace = {.us = 16, .is_default = true}) {
    ScriptedRace race({pace, runner});
    race.enter(0);
    return race.enter(1).dropped;
}

bool is_launched(const Runner& runner, const Runner& pace = {.us = 16, .is_default = true}) {
    ScriptedRace race({pace, runner});
    race.enter(0);
    return race.enter(1).launched;
}

int heat_rounds(double us, int calls, const RaceRules& rules) {
    ScriptedRace race({Runner{.us = us}}, rules);
    race.calls = calls;
    (void)race.run();
    return race.heat_rounds;
}

std::vector<std::size_t> heat(const std::vector<Runner>& runners, const RaceRules& rules = exact_rules()) {
    ScriptedRace race(runners, rules);
    (void)race.run();
    return race.heat;
}

}  // namespace

TEST_CASE("an earlier time beyond the heat's limit spares the screening, up to the limit it does not") {
    CHECK(is_launched({.known_us = 23.99}));
    CHECK(is_launched({.known_us = 24}));
    CHECK_FALSE(is_launched({.known_us = 24.01}));
    CHECK(is_dropped_at_entry({.known_us = 24.01}));
    CHECK(is_launched({.is_default = true, .known_us = 1000}));
    CHECK(is_launched({.known_us = 1000}, {.verified = TrialStatus::crashed}));  // there is no pace yet
    CHECK(is_launched({.us = 0.25}, {.us = 0.25}));  // without an earlier time, below a microsecond too
}

TEST_CASE("one that was spared takes no part") {
    const Answer crash{.status = TrialStatus::crashed};
    ScriptedRace race({{.us = 11, .answers = {{}, crash}}, {.known_us = 16.6}, {.us = 16}});
    CHECK(race.run().winner == 2);
    CHECK(race.replays.count(1) == 0);
    CHECK_FALSE(race.standing(1).launched);
    for (const std::string& line : race.heard) CHECK(line.find('1') == std::string::npos);
}

TEST_CASE("the screening takes three replays and drops nobody for a time") {
    CHECK_FALSE(is_dropped_at_entry({.us = 1000}));
    ScriptedRace race({Runner{.us = 24.01}});
    CHECK_FALSE(race.enter(0).dropped);
    CHECK(race.replays[0] == std::vector<int>{3});
}

TEST_CASE("the screening drops what fails or leaves no sample, the default and the first as well") {
    for (const bool is_default : {false, true}) {
        CHECK(is_dropped_at_entry({.is_default = is_default, .verified = TrialStatus::wrong_result}));
        CHECK(is_dropped_at_entry({.is_default = is_default, .answers = {{.status = TrialStatus::crashed}}}));
        CHECK(is_dropped_at_entry({.is_default = is_default, .answers = {{.us = std::vector<double>{}}}}));
        ScriptedRace first({Runner{.is_default = is_default, .answers = {{.us = std::vector<double>{}}}}});
        CHECK(first.enter(0).dropped);
    }
    ScriptedRace race({Runner{.verified = TrialStatus::wrong_result}});
    race.enter(0);
    CHECK(race.replays.empty());  // what is wrong is not timed
}

TEST_CASE("a time is a finite number above 0, in every stage; anything else fails its kernel") {
    for (const double us : {0.0, -1.0, std::nan(""), infinity, -infinity}) {
        CAPTURE(us);
        for (std::size_t stage = 0; stage < 3; ++stage) {
            std::vector<Answer> answers(stage);
            answers.push_back({.us = std::vector<double>{16, us, 16}});
            ScriptedRace race({{.us = 17}, {.answers = answers}});
            CHECK(race.run().winner == 0);
            CHECK(race.standing(1).verdict.status == TrialStatus::launch_failed);
            CHECK(race.standing(1).verdict.detail.starts_with("measured "));
            CHECK(race.standing(1).dropped);
        }
    }
    CHECK_FALSE(is_dropped_at_entry({.us = 0.5}, {.us = 0.5}));
    const Answer crash{.us = std::vector<double>{0}, .status = TrialStatus::crashed};
    ScriptedRace race({Runner{.answers = {crash}}});
    CHECK(race.enter(0).verdict.status == TrialStatus::crashed);  // the cause is not talked over
}

TEST_CASE("in the heat runs who is within its limit, the default and the incumbent as all others") {
    ScriptedRace race({{.us = 24}, {.us = 24.01}, {.us = 16}});
    (void)race.run();
    CHECK(race.heat == std::vector<std::size_t>{2, 0});
    CHECK(race.heat_rounds == 4);
    CHECK(race.standing(1).dropped);
    CHECK(race.standing(1).us.size() == 3);
    CHECK(heat({{.us = 24.01, .is_default = true}, {.us = 24.01, .is_incumbent = true}, {.us = 16}}) ==
          std::vector<std::size_t>{2});
}

TEST_CASE("where the best is short, the heat's limit is another one") {
    RaceRules rules = exact_rules();
    rules.short_heat_limit = 2;
    rules.short_us = 16;
    CHECK(heat({{.us = 32}, {.us = 24}, {.us = 16}}, rules) == std::vector<std::size_t>{2, 1});
    rules.short_us = 16.01;
    CHECK(heat({{.us = 32}, {.us = 32.01}, {.us = 16}}, rules) == std::vector<std::size_t>{2, 0});
    CHECK(heat({{.known_us = 32.01}, {.us = 16}}, rules).size() == 2);  // there is no pace yet
}

TEST_CASE("a heat has so many seats, for the fastest") {
    RaceRules rules = exact_rules();
    rules.heat_seats = 2;
    CHECK(heat({{.us = 17}, {.us = 16}, {.us = 16.5}}, rules) == std::vector<std::size_t>{1, 2});
}

TEST_CASE("one that has no sample after the heat is out, whatever an earlier run knew of it") {
    const Answer none{.us = std::vector<double>{}};
    ScriptedRace race({{.us = 16}, {.known_us = 1, .answers = {{}, none}}});
    const Decision decision = race.run();
    CHECK(decision.winner == 0);
    CHECK_FALSE(decision.runner_up);
    CHECK_FALSE(ScriptedRace({Runner{.answers = {{}, none}}}).run().winner);
}

TEST_CASE("who fails in the heat is out, sets no pace and is not launched again") {
    const Answer crash{.status = TrialStatus::crashed};
    ScriptedRace race({{.us = 10, .answers = {{}, crash}}, {.us = 14}});
    const Decision decision = race.run();
    CHECK(decision.winner == 1);
    CHECK_FALSE(decision.runner_up);
    CHECK(race.standing(0).verdict.status == TrialStatus::crashed);
    CHECK(race.standing(0).dropped);
    CHECK(race.finalists == std::vector<std::size_t>{1});
}

TEST_CASE("a heat of slow kernels has as many rounds as fit into its time, the screening's at least") {
    RaceRules rules = exact_rules();
    rules.heat_us = 1600;
    rules.heat_rounds = 10;
    CHECK(heat_rounds(16, 1, rules) == 10);
    CHECK(heat_rounds(160, 1, rules) == 10);
    CHECK(heat_rounds(161, 1, rules) == 9);
    CHECK(heat_rounds(40, 8, rules) == 5);  // a replay makes eight calls
    CHECK(heat_rounds(400, 1, rules) == 4);
    CHECK(heat_rounds(1600, 1, rules) == 3);
    CHECK(heat_rounds(1e9, 1, rules) == 3);
    CHECK(heat_rounds(1e-300, 1, rules) == 10);
    rules.heat_rounds = 2;
    CHECK(heat_rounds(16, 1, rules) == 2);
    CHECK(heat_rounds(1e9, 1, rules) == 2);
}
