// Who ties with a winner, from what is stored of its final.
#include "cache/ties.h"

#include <doctest/doctest.h>

#include <functional>

#include "support.h"

using namespace hone::cache;
using namespace hone::cache::test;

namespace {

/// A finalist beside `winner` that takes so many times as long.
Trial finalist(const Trial& winner, const std::string& candidate, double ratio) {
    Trial trial = winner;
    trial.winner = false;
    trial.candidate = candidate;
    trial.timing.median_us = winner.timing.median_us * ratio;
    return trial;
}

Trial final_winner() {
    Trial winner = sample_winner(1);
    winner.stage = Stage::final_round;
    winner.timing = {.median_us = 64, .p10_us = 63, .p90_us = 65, .samples = 30};
    return winner;
}

std::vector<std::string> names(const Ties& ties) {
    std::vector<std::string> list;
    for (const Trial& trial : ties.others) list.push_back(trial.candidate);
    return list;
}

}  // namespace

TEST_CASE("finalists within 1 % tie, faster and slower ones, the closest first") {
    const Trial winner = final_winner();
    const std::vector<Trial> trials{finalist(winner, "slower", 1.006), winner,
                                    finalist(winner, "too slow", 1.011), finalist(winner, "faster", 0.996),
                                    finalist(winner, "too fast", 0.989)};
    const Ties ties = ties_of(winner, trials);
    CHECK(names(ties) == std::vector<std::string>{"faster", "slower"});
    CHECK(ties.within == doctest::Approx(0.006));
    CHECK(describe_ties(ties.others.size(), ties.within) == "2 others within 0.6 %");
}

TEST_CASE("who did not come to the winner's own final does not tie with it, however close it is") {
    const Trial winner = final_winner();
    const auto ties_after = [&](const std::function<void(Trial&)>& change) {
        Trial other = finalist(winner, "other", 1);
        change(other);
        return ties_of(winner, {&other, 1}).others.size();
    };
    CHECK(ties_after([](Trial&) {}) == 1);
    CHECK(ties_after([](Trial& other) { other.stage = Stage::raced; }) == 0);
    CHECK(ties_after([](Trial& other) { ++other.created_at; }) == 0);
    CHECK(ties_after([](Trial& other) { other.toolchain.driver += "1"; }) == 0);
    CHECK(ties_after([](Trial& other) { other.provenance = Provenance::replayed; }) == 0);
    CHECK(ties_after([](Trial& other) { other.key.gpu.name += "1"; }) == 0);
    CHECK(ties_after([](Trial& other) { other.status = TrialStatus::crashed; }) == 0);
    CHECK(ties_after([](Trial& other) { other.winner = true; }) == 0);
    Trial early = winner;
    early.stage = Stage::raced;
    const Trial other = finalist(early, "other", 1);
    CHECK(ties_of(early, {&other, 1}).others.empty());
}

TEST_CASE("ties are said in words, rounded up to a tenth of a percent") {
    CHECK(describe_ties(0, 0).empty());
    CHECK(describe_ties(1, 0) == "1 other within 0.0 %");
    CHECK(describe_ties(3, 0.004) == "3 others within 0.4 %");
    CHECK(describe_ties(3, 0.0041) == "3 others within 0.5 %");
}
