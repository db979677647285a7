// Who wins a race: ties, the default's advantage, the runner-up, a race that is stopped, and what observers
// hear.
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

TEST_CASE("those who tie are decided by the fixed order: registers, shared memory, text") {
    CHECK(
        winner({{.us = 16, .registers = 40}, {.us = 16.1, .registers = 30}, {.us = 16.2, .registers = 31}}) ==
        1);
    const auto space = ranked_space(norm_problem(1024), made_up_device().traits);
    const Contestant plain{.image = {.candidate = space[0].candidate},
                           .resources = {.registers = 20, .shared_bytes = 64},
                           .known_us = {}};
    Contestant fewer_bytes = plain;
    fewer_bytes.resources.shared_bytes = 32;
    Contestant other_text = plain;
    other_text.image.candidate = space[1].candidate;
    Contestant fewer_registers = plain;
    fewer_registers.resources = {.registers = 19, .shared_bytes = 128};
    CHECK(comes_first(fewer_bytes, plain));
    CHECK_FALSE(comes_first(plain, fewer_bytes));
    CHECK(comes_first(fewer_registers, fewer_bytes));
    CHECK_FALSE(comes_first(fewer_bytes, fewer_registers));
    const bool plain_text_first = to_string(space[0].candidate) < to_string(space[1].candidate);
    CHECK(comes_first(plain, other_text) == plain_text_first);
    CHECK(comes_first(other_text, plain) != plain_text_first);
}

TEST_CASE("a tie reaches as far as the band and no further") {
    // Steps as small as these separate nobody.
    const std::vector<Runner> chain{{.us = 16, .registers = 40},   {.us = 16.25, .registers = 40},
                                    {.us = 16.5, .registers = 40}, {.us = 16.75, .registers = 40},
                                    {.us = 17, .registers = 30},   {.us = 17.25, .registers = 20}};
    CHECK(winner(chain) == 4);
}

TEST_CASE("inside the band, a step above the smallest gap separates; one equal to it does not") {
    CHECK(winner({{.us = 16, .registers = 40}, {.us = 16.25, .registers = 30}}) == 1);
    CHECK(winner({{.us = 16, .registers = 40}, {.us = 16.26, .registers = 30}}) == 0);
    CHECK(winner(
              {{.us = 16, .registers = 40}, {.us = 16.25, .registers = 30}, {.us = 16.5, .registers = 10}}) ==
          2);
    CHECK(winner({{.us = 16, .registers = 40},
                  {.us = 16.25, .registers = 30},
                  {.us = 16.51, .registers = 10}}) == 1);
}

TEST_CASE("of several gaps the widest separates, of equal ones the first") {
    CHECK(winner({{.us = 16, .registers = 40},
                  {.us = 16.5, .registers = 30},
                  {.us = 16.875, .registers = 10}}) == 0);
    CHECK(winner({{.us = 16, .registers = 40},
                  {.us = 16.375, .registers = 30},
                  {.us = 16.875, .registers = 10}}) == 1);
    CHECK(winner({{.us = 16, .registers = 40}, {.us = 16.5, .registers = 30}, {.us = 17, .registers = 10}}) ==
          0);
}

TEST_CASE("a gap separates only when it is wider than the noise of both its sides together") {
    // One that takes 16.5 us in the middle: its gap is half a microsecond.
    CHECK(winner({in_final({16}, 40), in_final({16.25, 16.75}, 30)}) == 0);
    CHECK(winner({in_final({16}, 40), in_final({16.0625, 16.9375}, 30)}) == 0);
    CHECK(winner({in_final({16}, 40), in_final({16, 17}, 30)}) == 1);
    // A quarter of a microsecond is the noise of the second and of the third.
    const auto with_third = [](double low) {
        return winner({in_final({16}, 40), in_final({16, 16.5}, 30), in_final({low, low + 0.5}, 10),
                       in_final({17}, 20)});
    };
    CHECK(with_third(16.5) == 2);
    CHECK(with_third(16.53125) == 1);
}

TEST_CASE("the default keeps its place up to the edge of the band, whatever lies between") {
    CHECK(default_wins({16.99}));
    CHECK(default_wins({17}));
    CHECK_FALSE(default_wins({17.01}));
    CHECK(default_wins({16, 20}));  // its noise is as wide as its distance
    CHECK_FALSE(default_wins({16.125, 19.5}));
    CHECK(winner({{.us = 17, .is_default = true, .registers = 90}, {.us = 16, .registers = 10}}) == 0);
}

TEST_CASE("the incumbent keeps its place before the default, which then is one of all") {
    const Runner fallback{.us = 16.5, .is_default = true};
    CHECK(winner({{.us = 17, .is_incumbent = true}, fallback, {.us = 16}}) == 0);
    CHECK(winner({{.us = 17.01, .is_incumbent = true}, fallback, {.us = 16}}) == 2);
    CHECK(winner({{.us = 30, .is_incumbent = true}, fallback, {.us = 16}}) == 1);
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
    ScriptedRace race({in_final({16, 32}, 40), in_final({16.5, 33}, 10)});
    CHECK(race.run().winner == 0);
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
                             "launch 2", "launch 1", "1 in final", "2 in final, wins"}) {
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
