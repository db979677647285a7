// Who ties with a winner, from what is stored of the heats and finals that it ran in.
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
    for (double Timing::*us : {&Timing::median_us, &Timing::p10_us, &Timing::p90_us})
        trial.timing.*us *= ratio;
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

TEST_CASE("finalists up to 1 % behind and 2 % ahead tie, the closest first") {
    const Trial winner = final_winner();
    const std::vector<Trial> trials{finalist(winner, "slower", 1.006),   winner,
                                    finalist(winner, "too slow", 1.011), finalist(winner, "faster", 0.996),
                                    finalist(winner, "ahead", 0.981),    finalist(winner, "too fast", 0.979)};
    const Ties ties = ties_of(winner, trials);
    CHECK(names(ties) == std::vector<std::string>{"faster", "slower", "ahead"});
    CHECK(ties.within == doctest::Approx(0.019));
    CHECK(describe_ties(ties.others.size(), ties.within) == "3 others within 1.9 %");
}

TEST_CASE("ratios to the incumbent of the same rounds say more than medians") {
    Trial winner = final_winner();
    winner.timing.incumbent_ratio = 0.98;
    Trial other = finalist(winner, "other", 1.03);
    other.timing.incumbent_ratio = 0.985;
    CHECK(ties_of(winner, {&other, 1}).others.size() == 1);
    CHECK(ties_of(winner, {&other, 1}).within == doctest::Approx(0.985 / 0.98 - 1));
    other = finalist(winner, "other", 1.001);
    other.timing.p10_us = 1.03 * winner.timing.p10_us;
    other.timing.incumbent_ratio = 1.0;
    CHECK(ties_of(winner, {&other, 1}).others.empty());
    other.timing.incumbent_ratio = 0;  // it did not run beside
    CHECK(ties_of(winner, {&other, 1}).others.size() == 1);
}

TEST_CASE("where medians are further apart the fastest tenths decide") {
    const Trial winner = final_winner();
    const auto ties = [&](double median, double p10) {
        Trial other = finalist(winner, "other", median);
        other.timing.p10_us = winner.timing.p10_us * p10;
        return ties_of(winner, {&other, 1});
    };
    CHECK(ties(0.95, 1).others.size() == 1);  // ahead, and at its best not
    CHECK(ties(0.95, 0.99).others.empty());
    CHECK(ties(1.05, 1.009).others.size() == 1);  // behind, and at its best not by more than the limit
    CHECK(ties(1.05, 0.98).others.size() == 1);
    CHECK(ties(1.05, 1.011).others.empty());
    CHECK(ties(1.05, 1.009).within == doctest::Approx(0.009));
    CHECK(ties(1.005, 1.2).within == doctest::Approx(0.005));
}

TEST_CASE("who ran beside the winner in the heat before its final ties by the times of the heat") {
    const Trial winner = final_winner();
    const auto in_heat = [&](const std::string& candidate, double ratio, std::int64_t before) {
        Trial trial = finalist(winner, candidate, ratio);
        trial.stage = Stage::raced;
        trial.created_at -= before;
        return trial;
    };
    // The clock was higher in the heat: all took 5 % less.
    const std::vector<Trial> trials{in_heat(winner.candidate, 0.95, 10), in_heat("level", 0.955, 10),
                                    in_heat("behind", 1.0, 10), finalist(winner, "behind", 1.02)};
    CHECK(names(ties_of(winner, trials)) == std::vector<std::string>{"level"});
    SUBCASE("the final says more than its heat") {
        std::vector<Trial> more = trials;
        more.push_back(finalist(winner, "level", 1.02));
        CHECK(ties_of(winner, more).others.empty());
    }
    SUBCASE("an earlier heat says nothing") {
        std::vector<Trial> more{in_heat(winner.candidate, 1, 20), in_heat("of an earlier heat", 1, 20)};
        more.insert(more.end(), trials.begin(), trials.end());
        CHECK(names(ties_of(winner, more)) == std::vector<std::string>{"level"});
    }
    SUBCASE("what it has met since does") {
        std::vector<Trial> more = trials;
        for (const Stage stage : {Stage::raced, Stage::final_round}) {
            const std::string name(hone::cache::name(stage));
            for (Trial trial : {finalist(winner, winner.candidate, 2), finalist(winner, name, 1.97),
                                finalist(winner, "far behind in " + name, 2.1)}) {
                trial.stage = stage;
                trial.created_at += 7;
                more.push_back(trial);
            }
        }
        CHECK(ties_of(winner, more).others.size() == 3);
    }
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
