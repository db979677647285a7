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

/// Winners of the races that 64 rows have for precedents, as texts.
std::vector<std::string> precedents(const std::vector<cache::Trial>& known,
                                    const std::vector<cache::Trial>& lower) {
    const test::Scratch scratch;
    cache::Cache cache = scratch.cache();
    cache.store(known);
    Knowledge knowledge(cache, device, cache::Provenance::measured);
    knowledge.add_lower(lower);
    std::vector<std::string> texts;
    for (const Precedent& precedent : knowledge.precedents(norm_problem(64)))
        texts.push_back(to_string(precedent.race->kernels.front().candidate));
    return texts;
}

std::vector<std::string> candidates_of(std::initializer_list<cache::Trial> trials) {
    std::vector<std::string> texts;
    for (const cache::Trial& trial : trials) texts.push_back(trial.candidate);
    return texts;
}

}  // namespace

TEST_CASE("races of all layers are precedents, the nearest first") {
    const std::vector<cache::Trial> known{won(4096, 1), won(128, 2)};
    const std::vector<cache::Trial> lower{won(16, 3), won(64, 4)};
    CHECK(precedents(known, {}) == candidates_of({known[1], known[0]}));
    CHECK(precedents({}, lower) == candidates_of({lower[1], lower[0]}));
    CHECK(precedents(known, lower) == candidates_of({lower[1], known[1], lower[0], known[0]}));
}

TEST_CASE("of one problem on one GPU the cache's race counts, else that of a lower layer") {
    const cache::Trial known = won(64, 1);
    const cache::Trial lower = won(64, 2);
    CHECK(precedents({known}, {lower}) == candidates_of({known}));
    CHECK(precedents({}, {lower}) == candidates_of({lower}));
}

TEST_CASE("a race on another GPU counts as half a doubling farther than one on this GPU") {
    cache::Trial foreign = won(64, 1);
    foreign.key.gpu.name = "another";
    const cache::Trial here = won(64, 2);
    const cache::Trial neighbour = won(128, 3);
    CHECK(precedents({}, {foreign, here}) == candidates_of({here, foreign}));
    CHECK(precedents({}, {neighbour, foreign}) == candidates_of({foreign, neighbour}));
}

TEST_CASE("of races at sizes that choose alike the very problem's is the nearest") {
    const std::string pages =
        "attention_prefill dtype=bf16 causal=yes window=0 softcap=no lse=no lengths=paged page_size=16 "
        "heads=32 kv_heads=8 head_dim=128 batch=1 q_len=32 kv_len=";
    const auto raced = [&](const char* kv_len) {
        cache::Trial trial = won(64, 0);
        const Problem problem = *parse_problem(pages + kv_len);
        trial.key = tuning_key(problem, device.gpu);
        trial.candidate = to_string(*fallback(problem, device.traits));
        return trial;
    };
    const test::Scratch scratch;
    cache::Cache cache = scratch.cache();
    Knowledge knowledge(cache, device, cache::Provenance::measured);
    knowledge.add_lower({raced("2304"), raced("32")});
    const Problem problem = *parse_problem(pages + "32");
    const std::vector<Precedent> near = knowledge.precedents(problem);
    REQUIRE(near.size() == 2);
    CHECK(near[1].doublings == 0);
    CHECK(near[0].race->problem == problem);
}

TEST_CASE("another shape is a precedent behind all races of the same one, the more alike the nearer") {
    const auto shaped = [](std::int64_t hidden, std::size_t place) {
        cache::Trial trial = won(64, place);
        const int field = field_index(*norm_problem(64).family, "hidden");
        trial.key = tuning_key(with(norm_problem(64), static_cast<std::size_t>(field), hidden), device.gpu);
        return trial;
    };
    const std::vector<cache::Trial> lower{shaped(16384, 1), shaped(8192, 2), won(8192, 3)};
    CHECK(precedents({}, lower) == candidates_of({lower[2], lower[1], lower[0]}));
}

TEST_CASE("the nearest stored race is the first precedent of its shape, else any of those that were stored") {
    const test::Scratch scratch;
    Knowledge knowledge(scratch.cache(), device, cache::Provenance::measured);
    CHECK_FALSE(knowledge.nearest_stored(norm_problem(64)));
    knowledge.learn(won(64, 1));
    CHECK_FALSE(knowledge.nearest_stored(norm_problem(64)));
    cache::Trial foreign = won(64, 2);
    foreign.key.gpu.name = "another";
    knowledge.add_lower({won(4096, 1), foreign, won(128, 3), won(1, 4)});
    for (const std::int64_t rows : {1, 16, 64, 100, 128, 4096}) {
        CAPTURE(rows);
        std::vector<Precedent> all = knowledge.precedents(norm_problem(rows));
        std::erase_if(all, [](const Precedent& precedent) { return precedent.race->of_this_run; });
        const std::optional<Precedent> nearest = knowledge.nearest_stored(norm_problem(rows));
        REQUIRE(nearest);
        CHECK(nearest->race == all.front().race);
        CHECK(nearest->same_problem == all.front().same_problem);
        CHECK(nearest->same_shape);
        CHECK(nearest->doublings == all.front().doublings);
    }
    const int hidden = field_index(*norm_problem(64).family, "hidden");
    const auto other =
        knowledge.nearest_stored(with(norm_problem(64), static_cast<std::size_t>(hidden), 8192));
    REQUIRE(other);
    CHECK_FALSE(other->same_shape);
    CHECK_FALSE(other->race->of_this_run);
}

TEST_CASE("a precedent has the kernels that raced its winner, each with its last time") {
    cache::Trial winner = won(64, 1);
    cache::Trial raced = won(64, 2);
    raced.winner = false;
    raced.stage = cache::Stage::raced;
    raced.timing = {.median_us = 3, .p10_us = 3, .p90_us = 3, .samples = 3};
    cache::Trial final_time = raced;
    final_time.stage = cache::Stage::final_round;
    final_time.timing.median_us = 2;
    const test::Scratch scratch;
    cache::Cache cache = scratch.cache();
    cache.store(std::vector{raced, final_time, winner});
    const Knowledge knowledge(cache, device, cache::Provenance::measured);
    const std::vector<Precedent> found = knowledge.precedents(norm_problem(64));
    REQUIRE(found.size() == 1);
    REQUIRE(found[0].race->kernels.size() == 2);
    CHECK(to_string(found[0].race->kernels[1].candidate) == raced.candidate);
    CHECK(found[0].race->kernels[1].us == 2);
    CHECK(found[0].race->is_current());
    CHECK_FALSE(found[0].race->of_this_run);
}

TEST_CASE("a prediction is no race") {
    cache::Trial predicted = won(64, 1);
    predicted.provenance = cache::Provenance::predicted;
    CHECK(precedents({predicted}, {won(128, 2)}) == candidates_of({won(128, 2)}));
}

TEST_CASE("a race of this run stands beside what was stored of the same problem") {
    const test::Scratch scratch;
    Knowledge knowledge(scratch.cache(), device, cache::Provenance::measured);
    knowledge.add_lower({won(64, 1)});
    knowledge.learn(won(64, 2));
    knowledge.learn(won(64, 3));
    const std::vector<Precedent> found = knowledge.precedents(norm_problem(64));
    REQUIRE(found.size() == 2);
    CHECK_FALSE(found[0].race->of_this_run);
    CHECK(found[1].race->of_this_run);
    CHECK(to_string(found[1].race->kernels.front().candidate) == won(64, 3).candidate);
}

TEST_CASE("a lower layer's winner does not finish a problem, the cache's does") {
    const test::Scratch scratch;
    Knowledge knowledge(scratch.cache(), device, cache::Provenance::measured);
    knowledge.add_lower({won(64, 1)});
    CHECK_FALSE(knowledge.finished_winner(norm_problem(64)));
    CHECK(knowledge.valid_trial(norm_problem(64),
                                ranked_space(norm_problem(64), device.traits)[1].candidate) == nullptr);
    knowledge.learn(won(64, 2));
    REQUIRE(knowledge.finished_winner(norm_problem(64)));
    CHECK(knowledge.finished_winner(norm_problem(64))->candidate == won(64, 2).candidate);
}
