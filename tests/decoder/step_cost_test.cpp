#include "decoder/scheduling/step_cost.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>

using namespace hone::decoder;

namespace {

using Random = std::minstd_rand;

double between(Random& random, double least, double most) {
    return least + (most - least) * static_cast<double>(random() % 10'000) / 10'000;
}

/// Products' tiles have 64 rows; 2 us a row beyond 128, keys 1 ns each.
std::vector<StepTime> made_times() {
    std::vector<StepTime> times;
    for (const std::int64_t sequences : {1, 32, 64}) {
        for (const std::int64_t keys : {1, 1024})
            times.push_back({{.sequences = sequences, .keys = sequences * keys},
                             4e-3 + 1e-9 * static_cast<double>(sequences * keys)});
    }
    for (std::int64_t rows = 64; rows <= 512; rows += 64)
        times.push_back({{.prompt_tokens = rows},
                         4e-3 + 20e-6 * static_cast<double>(std::max<std::int64_t>(rows - 128, 0))});
    return times;
}

StepCost random_cost(Random& random) {
    std::vector<StepTime> times;
    for (std::int64_t sequences = 1; sequences < 300; sequences += 1 + random() % 90) {
        const double s = between(random, 1e-3, 9e-3);
        times.push_back({{.sequences = sequences, .keys = sequences}, s});
        times.push_back({{.sequences = sequences, .keys = sequences * 1000}, s * between(random, 0.9, 3)});
    }
    for (std::int64_t rows = 64; rows <= 1024; rows += 64 * (1 + random() % 3))
        times.push_back({{.prompt_tokens = rows}, between(random, 1e-3, 30e-3)});
    times.push_back({{.prompt_tokens = 64, .prompt_begin = 4000}, between(random, 1e-3, 30e-3)});
    times.push_back({{.sequences = 20, .keys = 20, .prompt_tokens = 64}, between(random, 1e-3, 30e-3)});
    return StepCost(std::move(times));
}

StepLoad random_load(Random& random) {
    const auto below = [&](std::uint64_t limit) { return static_cast<std::int64_t>(random() % limit); };
    const std::int64_t sequences = 1 + below(400);
    return {.sequences = sequences, .keys = sequences * (1 + below(3000)), .prompt_begin = below(8000)};
}

}  // namespace

TEST_CASE("what was measured is what is expected, and between it keys and sequences count in proportion") {
    const StepCost cost(made_times());
    CHECK(cost.of({.sequences = 32, .keys = 32}) == doctest::Approx(4e-3 + 32e-9));
    CHECK(cost.of({.sequences = 48, .keys = 48 * 500}) == doctest::Approx(4e-3 + 24e-6));
    CHECK(cost.of({.sequences = 128, .keys = 128}) == doctest::Approx(8e-3).epsilon(1e-3));
    CHECK(cost.of({.prompt_tokens = 256}) == doctest::Approx(6.56e-3));
    CHECK(cost.of({.prompt_tokens = 200}) == doctest::Approx(6.56e-3));
    CHECK(cost.of({.prompt_tokens = 1024}) == doctest::Approx(2 * 11.68e-3));
}

TEST_CASE("a prompt beside sequences costs what their rows together do beyond the sequences'") {
    const StepCost cost(made_times());
    const StepLoad texts{.sequences = 64, .keys = 64};
    const double without = cost.of(texts);
    CHECK(cost.of({.sequences = 64, .keys = 64, .prompt_tokens = 64}) == doctest::Approx(without));
    CHECK(cost.of({.sequences = 64, .keys = 64, .prompt_tokens = 192}) == doctest::Approx(without + 2.56e-3));
    CHECK(cost.prompt_tokens_within(1.0, texts, 16, 1000) == 64);
    CHECK(cost.prompt_tokens_within(1.7, texts, 16, 1000) == 192);
    CHECK(cost.prompt_tokens_within(1.7, texts, 16, 100) == 100);
    CHECK(cost.prompt_tokens_within(1.0, texts, 80, 1000) == 80);
}

TEST_CASE("tokens in front of a prompt's cost, and so does a step with both") {
    std::vector<StepTime> times = made_times();
    times.push_back({{.prompt_tokens = 64, .prompt_begin = 1000}, 5e-3});
    times.push_back({{.sequences = 32, .keys = 32, .prompt_tokens = 64}, 4.5e-3 + 32e-9});
    const StepCost cost(std::move(times));
    CHECK(cost.of({.prompt_tokens = 64, .prompt_begin = 2000}) == doctest::Approx(6e-3));
    CHECK(cost.of({.sequences = 32, .keys = 32, .prompt_tokens = 32, .prompt_begin = 1000}) ==
          doctest::Approx(5e-3 + 32e-9));
}

TEST_CASE("as many tokens fit as are within the stretch, and one more is not, whatever was measured") {
    Random random(7);
    for (int trial = 0; trial < 3000; ++trial) {
        const StepCost cost = random_cost(random);
        StepLoad load = random_load(random);
        const double stretch = between(random, 1, 4);
        const std::int64_t least = 1 + random() % 100;
        const std::int64_t most = random() % 2048;
        const double limit_s = stretch * cost.of(load);
        const std::int64_t tokens = cost.prompt_tokens_within(stretch, load, least, most);
        CAPTURE(trial);
        REQUIRE(tokens <= most);
        REQUIRE(tokens >= std::min(least, most));
        load.prompt_tokens = tokens;
        if (tokens > least) REQUIRE(cost.of(load) <= limit_s);
        load.prompt_tokens = tokens + 1;
        if (tokens < most) REQUIRE(cost.of(load) > limit_s);
    }
}

TEST_CASE("the cheapest tokens of prompts fill the tiles of products, as many as wait for them") {
    std::vector<StepTime> times{{{.sequences = 100, .keys = 100}, 10e-3}};
    // 28 tokens beside 100 texts take 2 ms, 92 take 2.3, 156 take 4.7, and 28 more than that 20 ms.
    for (const auto& [rows, ms] :
         {std::pair{64, 6.0}, {100, 8.0}, {128, 10.0}, {192, 10.3}, {256, 11.9}, {284, 28.0}})
        times.push_back({{.prompt_tokens = rows}, 1e-3 * ms});
    const StepCost cost(times);
    const StepLoad load{.sequences = 100, .keys = 100};
    CHECK(cost.cheapest_prompt_tokens(2, load, 0, 1000) == 92);
    CHECK(cost.cheapest_prompt_tokens(2, load, 155, 1000) == 92);
    CHECK(cost.cheapest_prompt_tokens(2, load, 156, 1000) == 156);
    CHECK(cost.cheapest_prompt_tokens(2, load, 1000, 1000) == 156);
    CHECK(cost.cheapest_prompt_tokens(1.3, load, 1000, 1000) == 92);
    CHECK(cost.cheapest_prompt_tokens(1.22, load, 1000, 1000) == 28);
    CHECK(cost.cheapest_prompt_tokens(1.1, load, 1000, 1000) == 0);
    CHECK(cost.cheapest_prompt_tokens(2, load, 1000, 50) == 50);
    CHECK(cost.cheapest_prompt_tokens(2, load, 1000, 0) == 0);
    CHECK(StepCost({}).cheapest_prompt_tokens(2, load, 1000, 1000) == 0);
}

TEST_CASE("the cheapest tokens of prompts are within the stretch, and no other number of them is cheaper") {
    Random random(11);
    for (int trial = 0; trial < 2000; ++trial) {
        const StepCost cost = random_cost(random);
        StepLoad load = random_load(random);
        const double stretch = between(random, 1, 4);
        // Beyond the most rows that were measured nobody looks.
        const std::int64_t most = std::max<std::int64_t>(832 - load.sequences, 0);
        const double plain_s = cost.of(load);
        const std::int64_t found = cost.cheapest_prompt_tokens(stretch, load, random() % 2048, most);
        CAPTURE(trial);
        REQUIRE(found <= most);
        if (found == 0) continue;
        load.prompt_tokens = found;
        REQUIRE(cost.of(load) <= stretch * plain_s);
        const double token_s = (cost.of(load) - plain_s) / static_cast<double>(found);
        double least_s = token_s;
        for (std::int64_t tokens = 1; tokens <= most; ++tokens) {
            load.prompt_tokens = tokens;
            if (cost.of(load) > stretch * plain_s) continue;
            least_s = std::min(least_s, (cost.of(load) - plain_s) / static_cast<double>(tokens));
        }
        REQUIRE(token_s <= 1.04 * least_s + 1e-15);
    }
}

TEST_CASE("what is expected follows what steps take, and hardly a single one") {
    StepCost cost(made_times());
    const StepLoad plain{.sequences = 32, .keys = 32};
    const StepLoad mixed{.sequences = 32, .keys = 32, .prompt_tokens = 224};
    const double plain_s = cost.of(plain);
    const double mixed_s = cost.of(mixed);
    cost.note({plain, 1.0});
    CHECK(cost.of(plain) == doctest::Approx(plain_s * (1 + 1.0 / 16)));
    CHECK(cost.of(mixed) == doctest::Approx(mixed_s));
    for (int i = 0; i < 200; ++i) {
        cost.note({plain, 1.2 * plain_s});
        cost.note({mixed, 0.9 * mixed_s});
    }
    CHECK(cost.of(plain) == doctest::Approx(1.2 * plain_s).epsilon(1e-3));
    CHECK(cost.of(mixed) == doctest::Approx(0.9 * mixed_s).epsilon(1e-3));
}

TEST_CASE("without measurements, or with senseless ones, nothing is bounded") {
    const StepLoad load{.sequences = 4, .keys = 400};
    const double nan = std::numeric_limits<double>::quiet_NaN();
    for (StepCost cost :
         {StepCost({}), StepCost({{{.sequences = 1, .keys = 1}, 0}, {{.prompt_tokens = 64}, 0}}),
          StepCost({{{.sequences = 1, .keys = 1}, nan}, {{.prompt_tokens = 64}, -1}})}) {
        CHECK(cost.of(load) == 0);
        cost.note({load, 1.0});
        cost.note({{}, nan});
        CHECK(cost.prompt_tokens_within(1.5, load, 16, 512) == 512);
    }
}
