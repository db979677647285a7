#include "tuner/search/race.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "tests/tuner/made_up_measurer.h"

using namespace hone;
using namespace hone::tuner;
using hone::test::MadeUpMeasurer;

namespace {

struct Quiet final : RaceObserver {
    int launches = 0;
    int settled_count = 0;
    int winners = 0;
    int stop_after = 1 << 30;  ///< launches
    void about_to_launch(const Contestant&) override { ++launches; }
    void settled(const Standing&, bool winner) override {
        ++settled_count;
        winners += winner;
    }
    [[nodiscard]] bool stop() const override { return launches >= stop_after; }
};

std::vector<Candidate> candidates(std::size_t count) {
    std::vector<Candidate> list;
    for (const RankedCandidate& ranked :
         ranked_space(test::norm_problem(1024), test::made_up_device().traits)) {
        if (list.size() < count) list.push_back(ranked.candidate);
    }
    return list;
}

struct Ran {
    std::optional<std::string> winner;
    double winner_us = 0;
    std::vector<Standing> standings;
    Decision decision;
};

Ran run(MadeUpMeasurer& measurer, const std::vector<Candidate>& list, int default_index = -1,
        RaceObserver* watcher = nullptr) {
    Quiet quiet;
    Race race(measurer, watcher == nullptr ? quiet : *watcher);
    for (std::size_t i = 0; i < list.size(); ++i) {
        Contestant contestant{.image = {.candidate = list[i]},
                              .is_default = static_cast<int>(i) == default_index,
                              .resources = *measurer.resources_of(list[i]),
                              .known_us = {}};
        race.enter(contestant);
    }
    Ran ran;
    ran.decision = race.finish();
    ran.standings = race.standings();
    if (ran.decision.winner) {
        ran.winner = to_string(ran.standings[*ran.decision.winner].contestant.image.candidate);
        ran.winner_us = measurer.true_us(*ran.winner);
    }
    return ran;
}

}  // namespace

TEST_CASE("no time is no time: a clock that stands still chooses nobody, and no one whom it favours") {
    const auto list = candidates(4);
    MadeUpMeasurer measurer;
    measurer.true_us = [](const std::string&) { return 0.0; };
    const Ran nobody = run(measurer, list, 0);
    CHECK_FALSE(nobody.winner);
    for (const Standing& standing : nobody.standings) {
        CHECK(standing.verdict.status == cache::TrialStatus::launch_failed);
        CHECK(standing.verdict.detail.starts_with("measured 0 us a call; allowed are numbers above 0"));
    }
    measurer.true_us = [&](const std::string& name) { return name == to_string(list[2]) ? 0.0 : 10.0; };
    const Ran others = run(measurer, list, 0);
    REQUIRE(others.winner);
    CHECK(*others.winner != to_string(list[2]));
}

TEST_CASE("the race finds the best candidate or one tied with it, whatever the noise") {
    const auto list = candidates(40);
    for (int seed = 1; seed <= 60; ++seed) {
        MadeUpMeasurer measurer;
        measurer.random.seed(static_cast<std::uint64_t>(seed));
        measurer.noise = 0.003 * (seed % 5);
        measurer.true_us = [&](const std::string& name) {
            return test::spread(name + std::to_string(seed % 7));
        };
        double best = 1e9;
        for (const Candidate& c : list) best = std::min(best, measurer.true_us(to_string(c)));
        const Ran ran = run(measurer, list);
        REQUIRE(ran.winner);
        CHECK(ran.decision.complete);
        CHECK(ran.winner_us <= best * 1.03);
    }
}

TEST_CASE("equal candidates are tied, and the tie goes to the same one in every run") {
    const auto list = candidates(12);
    std::set<std::string> winners;
    for (int seed = 1; seed <= 40; ++seed) {
        MadeUpMeasurer measurer;
        measurer.random.seed(static_cast<std::uint64_t>(seed));
        measurer.noise = 0.001;
        winners.insert(*run(measurer, list).winner);
    }
    CHECK(winners.size() == 1);
}

TEST_CASE("without noise two races choose the same, in any order of entry") {
    auto list = candidates(30);
    std::map<std::string, double> times;  // none ties with another
    for (std::size_t i = 0; i < list.size(); ++i)
        times[to_string(list[i])] = 10 * std::pow(1.03, static_cast<double>(7 * i % list.size()));
    MadeUpMeasurer measurer;
    measurer.true_us = [&](const std::string& name) { return times.at(name); };
    const auto first = run(measurer, list).winner;
    std::ranges::reverse(list);
    CHECK(run(measurer, list).winner == first);
}

TEST_CASE("the default loses its place only to a candidate that is clearly better than the band") {
    const auto list = candidates(8);
    const std::string challenger = to_string(list[5]);
    const std::string fallback = to_string(list[0]);
    for (const auto& [better, expected] :
         {std::pair{0.9995, fallback}, std::pair{0.999, fallback}, std::pair{0.985, challenger}}) {
        MadeUpMeasurer measurer;
        measurer.noise = 0.001;
        measurer.true_us = [&, gain = better](const std::string& name) {
            return name == challenger ? 10.0 * gain : (name == fallback ? 10.0 : 12.0);
        };
        CHECK(run(measurer, list, 0).winner == expected);
    }
}

TEST_CASE("a wrong, crashed or hanging candidate never wins, however fast it is") {
    const auto list = candidates(10);
    MadeUpMeasurer measurer;
    measurer.true_us = [&](const std::string& name) { return name == to_string(list[3]) ? 1.0 : 10.0; };
    for (const auto status :
         {cache::TrialStatus::wrong_result, cache::TrialStatus::crashed, cache::TrialStatus::timed_out}) {
        measurer.failures[to_string(list[3])] = {.status = status, .detail = "planted"};
        const Ran ran = run(measurer, list);
        CHECK(ran.winner != to_string(list[3]));
        CHECK(ran.standings[3].verdict.status == status);
    }
}

TEST_CASE("nothing wins when everything fails") {
    const auto list = candidates(4);
    MadeUpMeasurer measurer;
    for (const Candidate& c : list) {
        measurer.failures[to_string(c)] = {.status = cache::TrialStatus::wrong_result, .detail = "planted"};
    }
    CHECK_FALSE(run(measurer, list).winner);
}

TEST_CASE("the hopeless get three replays and no more") {
    const auto list = candidates(20);
    MadeUpMeasurer measurer;
    measurer.true_us = [&](const std::string& name) { return name == to_string(list[0]) ? 10.0 : 40.0; };
    const Ran ran = run(measurer, list);
    for (std::size_t i = 1; i < ran.standings.size(); ++i) CHECK(ran.standings[i].us.size() == 3);
}

TEST_CASE("a default that is far behind has the time of its screening") {
    const auto list = candidates(10);
    MadeUpMeasurer measurer;
    measurer.true_us = [&](const std::string& name) { return name == to_string(list[0]) ? 50.0 : 10.0; };
    const Ran ran = run(measurer, list, 0);
    CHECK(ran.standings[0].stage == cache::Stage::screened);
    CHECK(ran.standings[0].us.size() == 3);
    CHECK(ran.winner != to_string(list[0]));
}

TEST_CASE("a race that is stopped chooses from what it knows and says that it is not complete") {
    const auto list = candidates(10);
    MadeUpMeasurer measurer;
    measurer.true_us = test::spread;
    Quiet watcher;
    watcher.stop_after = 4;
    const Ran ran = run(measurer, list, 0, &watcher);
    REQUIRE(ran.winner);
    CHECK_FALSE(ran.decision.complete);
    CHECK(watcher.winners == 1);
}

TEST_CASE("a candidate that an interrupted run found slow is not measured again") {
    const auto list = candidates(3);
    MadeUpMeasurer measurer;
    Quiet quiet;
    Race race(measurer, quiet);
    race.enter({.image = {.candidate = list[0]}, .is_default = true, .resources = {}, .known_us = {}});
    race.enter({.image = {.candidate = list[1]}, .resources = {}, .known_us = 30.0});
    race.enter({.image = {.candidate = list[2]}, .resources = {}, .known_us = 10.1});
    CHECK(measurer.verified.count(to_string(list[1])) == 0);
    CHECK(measurer.verified.count(to_string(list[2])) == 1);
}
