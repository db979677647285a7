// Winners that need few images: who ties may take a winner's place, nobody else, and the order of the races
// does not matter.
#include "tuner/search/shared_winners.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>

#include "cache/ties.h"
#include "tests/tuner/made_up_measurer.h"
#include "tuner/search/knowledge.h"

using namespace hone;
using namespace hone::tuner;

namespace {

constexpr std::int64_t sizes[] = {16, 32, 64, 128, 256, 512};

/// Candidates of one variant that have images of their own.
const std::vector<Candidate>& kernels() {
    static const std::vector<Candidate> found = [] {
        std::vector<Candidate> some;
        std::set<std::string> images;
        for (const RankedCandidate& ranked :
             ranked_space(test::norm_problem(64), test::made_up_device().traits)) {
            const std::string image = to_string(image_candidate(ranked.candidate, {9, 0, true}));
            if (images.insert(image).second) some.push_back(ranked.candidate);
        }
        return some;
    }();
    return found;
}

/// Takes so many times as long as the incumbent of the race.
cache::Trial trial(std::int64_t rows, std::size_t kernel, double ratio) {
    cache::Trial trial;
    trial.key = tuning_key(test::norm_problem(rows), test::made_up_device().gpu);
    trial.candidate = to_string(kernels()[kernel]);
    trial.template_hash = template_hash(*kernels()[kernel].variant);
    trial.stage = cache::Stage::final_round;
    trial.provenance = cache::Provenance::measured;
    trial.timing = {.median_us = 10 * ratio, .p10_us = 9.9 * ratio, .p90_us = 10.1 * ratio, .samples = 10};
    trial.timing.incumbent_ratio = ratio;
    return trial;
}

/// The first kernel has won.
WonRace race(std::int64_t rows, const std::vector<std::pair<std::size_t, double>>& finalists) {
    WonRace race;
    for (const auto& [kernel, ratio] : finalists) race.push_back(trial(rows, kernel, ratio));
    race.front().winner = true;
    return race;
}

std::map<std::string, std::string> winners(const std::vector<WonRace>& races) {
    std::map<std::string, std::string> won;
    for (const WonRace& race : races) {
        REQUIRE(race.front().winner);
        CHECK(std::ranges::count_if(race, &cache::Trial::winner) == 1);
        won[race.front().key.dynamic_fields] = race.front().candidate;
    }
    return won;
}

/// Finals of some kernels at each size, as they are close to each other or not.
std::vector<WonRace> drawn_races(std::mt19937_64& random) {
    std::vector<WonRace> races;
    for (const std::int64_t rows : sizes) {
        std::vector<std::size_t> order{0, 1, 2, 3, 4, 5, 6, 7};
        std::ranges::shuffle(order, random);
        std::vector<std::pair<std::size_t, double>> finalists{{order[0], 1.0}};
        for (std::size_t i = 1; i < 5; ++i)
            finalists.emplace_back(order[i], std::uniform_real_distribution(0.995, 1.02)(random));
        races.push_back(race(rows, finalists));
    }
    return races;
}

}  // namespace

TEST_CASE("a kernel that ties at several sizes takes the place of winners that are alone") {
    std::vector<WonRace> races{race(16, {{0, 1.0}, {2, 1.004}}), race(32, {{1, 1.0}, {2, 1.006}}),
                               race(64, {{2, 1.0}, {1, 1.003}})};
    const SharedWinners shared = share_images(races);
    CHECK(shared.images_before == 3);
    CHECK(shared.images == 1);
    CHECK(shared.changed == 2);
    for (const auto& [_, winner] : winners(races)) CHECK(winner == to_string(kernels()[2]));
    // Whoever gave the place away still stands in the race, and all of it once more changes nothing.
    CHECK(races.front()[1].candidate == to_string(kernels()[0]));
    CHECK_FALSE(races.front()[1].winner);
    CHECK(share_images(races).changed == 0);
}

TEST_CASE("who does not tie takes nobody's place, and where no image is saved nothing changes") {
    std::vector<WonRace> behind{race(16, {{0, 1.0}, {1, 1.02}}), race(32, {{1, 1.0}, {0, 1.02}})};
    CHECK(share_images(behind).changed == 0);
    std::vector<WonRace> alone{race(16, {{0, 1.0}, {1, 1.001}}), race(32, {{0, 1.0}, {1, 1.001}})};
    const SharedWinners shared = share_images(alone);
    CHECK(shared.changed == 0);
    CHECK(shared.images == 1);
}

TEST_CASE("winners of a step, of an older template and kernels of a heat stay out of it") {
    const auto lone = [](auto change) {
        std::vector<WonRace> races{race(16, {{0, 1.0}, {1, 1.001}}), race(32, {{1, 1.0}})};
        change(races.front());
        return share_images(races).changed == 0;
    };
    CHECK_FALSE(lone([](WonRace&) {}));
    CHECK(lone([](WonRace& race) { race.front().chain = "llama-3-8b tokens=8 kv=1024"; }));
    CHECK(lone([](WonRace& race) { race.front().template_hash = "an older one"; }));
    CHECK(lone([](WonRace& race) { race.back().template_hash = "an older one"; }));
    CHECK(lone([](WonRace& race) { race.back().stage = cache::Stage::raced; }));
}

TEST_CASE("other static problems and other GPUs have images of their own") {
    std::vector<WonRace> races{race(16, {{0, 1.0}, {1, 1.001}}), race(32, {{1, 1.0}})};
    for (cache::Trial& trial : races.back()) trial.key.gpu.name = "another one";
    CHECK(share_images(races).changed == 0);
}

TEST_CASE("winners tie with who they were, need no more images, and do not depend on the order of races") {
    std::mt19937_64 random(7);
    for (int draw = 0; draw < 200; ++draw) {
        const std::vector<WonRace> drawn = drawn_races(random);
        std::vector<WonRace> races = drawn;
        const SharedWinners shared = share_images(races);
        std::set<std::string> images;
        for (std::size_t i = 0; i < races.size(); ++i) {
            const std::string winner = races[i].front().candidate;
            images.insert(winner);
            std::vector<std::string> could{drawn[i].front().candidate};
            for (const cache::Trial& tied : cache::ties_of(drawn[i].front(), drawn[i]).others)
                could.push_back(tied.candidate);
            CHECK(std::ranges::find(could, winner) != could.end());
        }
        CHECK(images.size() == shared.images);
        CHECK(shared.images <= shared.images_before);

        std::vector<WonRace> shuffled = drawn;
        std::ranges::shuffle(shuffled, random);
        share_images(shuffled);
        CHECK(winners(shuffled) == winners(races));
    }
}
