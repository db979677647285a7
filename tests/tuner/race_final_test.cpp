// Who meets in the final of a race, and how many rounds it takes.
#include <doctest/doctest.h>

#include "tests/tuner/scripted_race.h"

using namespace hone;
using namespace hone::tuner;
using namespace hone::test;
using cache::TrialStatus;

namespace {

using Indices = std::vector<std::size_t>;

Indices finalists(const std::vector<Runner>& runners, std::size_t seats = 8, std::size_t fastest_seats = 3) {
    RaceRules rules = exact_rules();
    rules.finalists = seats;
    rules.fastest_seats = fastest_seats;
    ScriptedRace race(runners, rules);
    (void)race.run();
    return race.finalists;
}

std::vector<int> rounds(const std::vector<Runner>& runners, const RaceRules& rules = exact_rules()) {
    ScriptedRace race(runners, rules);
    (void)race.run();
    return race.rounds;
}

const std::vector<int> none{};
const std::vector<int> all_rounds{4, 4};

}  // namespace

TEST_CASE("the final takes who is within its limit, the fastest first") {
    CHECK(finalists({{.us = 18}, {.us = 18.01}, {.us = 16}, {.us = 17.5}, {.us = 17.99}}) ==
          Indices{2, 3, 4, 0});
    CHECK(finalists({{.us = 16}}) == Indices{0});
}

TEST_CASE(
    "after the fastest, seats go by the order of entry to those who are level with the best, then by time") {
    const std::vector<Runner> runners{{.us = 17}, {.us = 16.3},  {.us = 16.2}, {.us = 16.1},
                                      {.us = 16}, {.us = 17.01}, {.us = 17.5}};
    CHECK(finalists(runners, 8, 2) == Indices{4, 3, 0, 1, 2, 5, 6});
    CHECK(finalists(runners, 4, 2) == Indices{4, 3, 0, 1});
    CHECK(finalists(runners, 6, 5) == Indices{4, 3, 2, 1, 0, 5});
    CHECK(finalists(runners, 6, 6) == Indices{4, 3, 2, 1, 0, 5});  // more seats than are level
    CHECK(finalists(runners, 7, 0) == Indices{0, 1, 2, 3, 4, 5, 6});
}

TEST_CASE("of two that are equally slow, the one that entered first has the last seat") {
    CHECK(finalists({{.us = 17.5, .registers = 30}, {.us = 17.5, .registers = 10}, {.us = 16}}, 2, 1) ==
          Indices{2, 0});
}

TEST_CASE("who holds the place has a seat of its own within the limit, the incumbent before the default") {
    CHECK(finalists({{.us = 18, .is_default = true}, {.us = 16}, {.us = 16.1}}, 2) == Indices{1, 2, 0});
    CHECK(finalists({{.us = 18.01, .is_default = true}, {.us = 16}, {.us = 16.1}}, 2) == Indices{1, 2});
    CHECK(finalists(
              {{.us = 17, .is_default = true}, {.us = 18, .is_incumbent = true}, {.us = 16}, {.us = 16.1}},
              2) == Indices{2, 3, 1});
    CHECK(finalists({{.us = 16, .is_default = true}, {.us = 16.1}, {.us = 16.2}}, 2) == Indices{0, 1});
    CHECK(finalists({{.is_default = true, .verified = TrialStatus::crashed}, {.us = 16}}) == Indices{1});
}

TEST_CASE("rounds go on while an interval reaches the edge of the band, from either side") {
    CHECK(rounds({in_final({17}), {}}) == all_rounds);
    CHECK(rounds({in_final({16.99}), {}}) == none);
    CHECK(rounds({in_final({17.01}), {}}) == none);
    CHECK(rounds({in_final({16, 17}), {}}) == all_rounds);
    CHECK(rounds({in_final({16, 16.99}), {}}) == none);
    CHECK(rounds({in_final({17, 18}), {}}) == all_rounds);
    CHECK(rounds({in_final({17.01, 18}), {}}) == none);
    CHECK(rounds({in_final({16, 18}), {}}) == all_rounds);
    CHECK(rounds({in_final({18}), in_final({17}), {}}) == all_rounds);
}

TEST_CASE("behind the first that surely holds nobody's interval matters") {
    CHECK(rounds({{}, in_final({17})}) == none);
    Runner incumbent{.us = 16.5, .is_incumbent = true};
    CHECK(rounds({in_final({17}), {}, incumbent}) == none);
    incumbent.us = 17;
    CHECK(rounds({incumbent, {}}) == all_rounds);
    incumbent.us = 17.5;
    CHECK(rounds({incumbent, {}}) == none);
    CHECK(rounds({in_final({17}), {}, incumbent}) == all_rounds);
}

TEST_CASE("a fastest one that takes now the one, now the other time gets all rounds") {
    RaceRules rules = exact_rules();
    const std::vector<Runner> runners{in_final({15, 13, 13, 13}), {.us = 14}};
    CHECK(rounds(runners, rules) == none);
    rules.level_spread = 1.04;
    CHECK(rounds(runners, rules) == all_rounds);
}

TEST_CASE("one finalist alone is decided by the heat, and nobody needs no round") {
    CHECK(rounds({{}}) == none);
    CHECK(rounds({{.verified = TrialStatus::crashed}}).empty());
}

TEST_CASE("rounds are asked for in batches, the last with what is left") {
    RaceRules rules = exact_rules();
    rules.final_rounds = 10;
    CHECK(rounds({in_final({17}), {}}, rules) == std::vector<int>{4, 4, 2});
    rules.final_us = 6 * 33;
    CHECK(rounds({{.us = 17}, {.us = 16}}, rules) == std::vector<int>{4, 2});
    rules.final_us = 6 * 33 - 0.01;
    CHECK(rounds({{.us = 17}, {.us = 16}}, rules) == std::vector<int>{4, 1});
    rules.final_us = 1;
    CHECK(rounds({{.us = 17}, {.us = 16}}, rules) == std::vector<int>{3});
}

TEST_CASE("who fails in the final is out, whatever it takes before and after, and nobody waits for it") {
    const std::vector<double> fast{1};
    const Answer crash{.us = fast, .status = TrialStatus::crashed};
    ScriptedRace race({{.us = 17, .answers = {{}, {}, crash}}, {.us = 16}});
    const Decision decision = race.run();
    CHECK(decision.winner == 1);
    CHECK_FALSE(decision.runner_up);
    CHECK(race.rounds == std::vector<int>{4});
    ScriptedRace longer({{.us = 17}, {.us = 16}, {.answers = {{}, {}, crash, {.us = fast}}}});
    CHECK(longer.run().winner == 0);
    CHECK(longer.rounds == all_rounds);
    CHECK(longer.standing(2).verdict.status == TrialStatus::crashed);
    ScriptedRace late({{.us = 17}, {.us = 16, .answers = {{}, {}, {}, crash}}});
    CHECK(late.run().winner == 0);
    CHECK(late.standing(1).failed());
}

TEST_CASE("the samples of the heat and of the final count in it, those of the screening do not") {
    ScriptedRace race({in_final({17}), {}});
    (void)race.run();
    CHECK(race.standing(0).us == std::vector<double>(12, 17.0));
    CHECK(race.standing(0).stage == cache::Stage::final_round);
}

TEST_CASE(
    "where the incumbent would lose its place the final has other buffers, and the heat counts as well") {
    const auto incumbent = [](double in_heat, double in_final) {
        return Runner{.is_incumbent = true,
                      .answers = {{}, {.us = {{in_heat}}}, {.us = {{in_final}}}, {.us = {{in_final}}}}};
    };
    ScriptedRace kept({incumbent(16, 16), {.us = 15.5}});
    CHECK(kept.run_anew().winner == 0);
    CHECK(kept.begun_anew == 0);
    // Too far behind for a final, but in the heat alone: its seat is kept, and on the mean of both it is
    // level.
    ScriptedRace disturbed({incumbent(19, 16), {.us = 16}});
    CHECK(disturbed.run_anew().winner == 0);
    CHECK(disturbed.begun_anew == 1);
    CHECK(disturbed.standing(0).us.front() == 19);
    CHECK(disturbed.standing(0).us.back() == 16);
    ScriptedRace beaten({incumbent(19, 19), {.us = 16}});
    CHECK(beaten.run_anew().winner == 1);
    CHECK(beaten.begun_anew == 1);
    ScriptedRace alone({{.us = 17}, {.us = 16}});
    CHECK(alone.run_anew().winner.has_value());
    CHECK(alone.begun_anew == 0);  // nobody loses a place
    ScriptedRace refused({incumbent(19, 16), {.us = 16}});
    refused.can_begin_anew = false;
    const Decision early = refused.run_anew();
    CHECK(early.winner == 1);
    CHECK_FALSE(early.complete);
}
