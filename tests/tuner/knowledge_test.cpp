#include "tuner/search/knowledge.h"

#include <doctest/doctest.h>

#include "tests/support/scratch.h"
#include "tests/tuner/made_up_measurer.h"

using namespace hone;
using namespace hone::tuner;
using hone::test::norm_problem;

namespace {

const DeviceInfo device = test::made_up_device();

/// The `place`th candidate of the space of 64 rows as the winner of `rows`.
cache::Trial won(std::int64_t rows, std::size_t place) {
    const Candidate candidate = ranked_space(norm_problem(64), device.traits)[place].candidate;
    cache::Trial trial;
    trial.key = tuning_key(norm_problem(rows), device.gpu);
    trial.toolchain = device.toolchain;
    trial.candidate = to_string(candidate);
    trial.template_hash = template_hash(*candidate.variant);
    trial.stage = cache::Stage::final_round;
    trial.winner = true;
    return trial;
}

/// Candidates to try for 64 rows, as texts.
std::vector<std::string> seeds(const std::vector<cache::Trial>& known, std::vector<cache::Trial> lower,
                               std::size_t limit = 8) {
    const test::Scratch scratch;
    Knowledge knowledge(scratch.cache(), std::move(lower), device, cache::Provenance::measured);
    for (const cache::Trial& trial : known) knowledge.learn(trial);
    std::vector<std::string> texts;
    for (const Candidate& seed : knowledge.seeds(norm_problem(64), limit)) texts.push_back(to_string(seed));
    return texts;
}

std::vector<std::string> candidates_of(std::initializer_list<cache::Trial> trials) {
    std::vector<std::string> texts;
    for (const cache::Trial& trial : trials) texts.push_back(trial.candidate);
    return texts;
}

}  // namespace

TEST_CASE("winners of lower layers are seeds, the nearest of all layers first") {
    const std::vector<cache::Trial> known{won(4096, 1), won(128, 2)};
    const std::vector<cache::Trial> lower{won(16, 3), won(64, 4)};
    CHECK(seeds(known, {}) == candidates_of({known[1], known[0]}));
    CHECK(seeds({}, lower) == candidates_of({lower[1], lower[0]}));
    CHECK(seeds(known, lower) == candidates_of({lower[1], known[1], lower[0], known[0]}));
    CHECK(seeds(known, lower, 2) == candidates_of({lower[1], known[1]}));
}

TEST_CASE("of equally near winners the cache's are seeds before those of lower layers") {
    const cache::Trial known = won(64, 1);
    const cache::Trial lower = won(64, 2);
    CHECK(seeds({known}, {lower}) == candidates_of({known, lower}));
    CHECK(seeds({known}, {lower}, 1) == candidates_of({known}));
    CHECK(seeds({known}, {known, lower}) == candidates_of({known, lower}));
}

TEST_CASE("a lower layer's winner of another GPU is a seed behind one that is as near on this GPU") {
    cache::Trial foreign = won(64, 1);
    foreign.key.gpu.name = "another";
    const cache::Trial here = won(64, 2);
    CHECK(seeds({}, {foreign, here}) == candidates_of({here, foreign}));
}

TEST_CASE("a lower layer's winner does not finish a problem, the cache's does") {
    const test::Scratch scratch;
    Knowledge knowledge(scratch.cache(), {won(64, 1)}, device, cache::Provenance::measured);
    CHECK_FALSE(knowledge.finished_winner(norm_problem(64)));
    CHECK(knowledge.valid_trial(norm_problem(64),
                                ranked_space(norm_problem(64), device.traits)[1].candidate) == nullptr);
    knowledge.learn(won(64, 2));
    REQUIRE(knowledge.finished_winner(norm_problem(64)));
    CHECK(knowledge.finished_winner(norm_problem(64))->candidate == won(64, 2).candidate);
}
