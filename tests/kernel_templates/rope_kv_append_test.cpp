#include "kernel_templates/rope_kv_append/rope_kv_append.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "kernel_templates/catalog.h"
#include "kernel_templates/space.h"
#include "tests/kernel_templates/drawn_cases.h"

using namespace hone;
using test::tunable;

namespace {

Problem problem_of(const std::string& text) { return *parse_problem("rope_kv_append " + text); }

template <class Check>
void for_every_problem_and_device(Check check) {
    test::for_every_problem_and_device(*find_family("rope_kv_append"), 24, check);
}

std::int64_t scalar(const Problem& problem, rope_kv_append::CallScalar index) {
    return static_cast<std::int64_t>(problem.family->scalars(problem)[index].tuning_value.bits);
}

/// What tuning puts into an index tensor: a permutation may be any, here the reverse.
std::int64_t filled(const Argument& argument, std::int64_t i) {
    const auto offset = static_cast<std::int64_t>(argument.fill_offset);
    if (argument.fill == Fill::constant) return offset;
    if (argument.fill == Fill::ramp) return offset + i * static_cast<std::int64_t>(argument.fill_scale);
    REQUIRE(argument.fill == Fill::permutation);
    return argument.elements() - 1 - i;
}

/// Position of a token of the tuning call, and the token of the cache that it is written to.
struct Place {
    std::int64_t position;
    std::int64_t row;
};

Place place_of(const Problem& problem, std::int64_t token) {
    using namespace rope_kv_append;
    const RopeProblem p(problem);
    const std::vector<Argument> arguments = problem.family->arguments(problem);
    const std::int64_t inner = p.page_size != 0 ? p.page_size : scalar(problem, kv_len);
    const std::int64_t outer_rows = scalar(problem, cache_stride) / scalar(problem, cache_token_stride);
    std::int64_t outer = 0;
    std::int64_t position = 0;
    std::int64_t place = 0;
    if (p.slots) {
        position = filled(arguments[kv_lengths], token);
        const std::int64_t slot = filled(arguments[slots], token);
        outer = slot / inner;
        place = slot % inner;
    } else {
        const std::int64_t count = scalar(problem, q_tokens);
        outer = token / count;
        CHECK(outer < arguments[kv_lengths].elements());
        position = filled(arguments[kv_lengths], outer) - count + token % count;
        place = position % inner;
        if (p.page_size != 0) {
            const std::int64_t entry = outer * scalar(problem, page_table_stride) + position / inner;
            REQUIRE(entry < arguments[page_table].elements());
            outer = filled(arguments[page_table], entry);
        }
        CHECK(position < scalar(problem, kv_len));
    }
    CHECK(outer < scalar(problem, pool_pages));
    return {position, outer * outer_rows + place};
}

}  // namespace

TEST_CASE("the fields of rope_kv_append stand in their order, with their defaults") {
    CHECK(to_string(problem_of("dtype=bf16 heads=32 kv_heads=8 head_dim=128 rotary_dim=64 tokens=16")) ==
          "rope_kv_append dtype=bf16 kv_dtype=same style=half norm=no slots=no page_size=0 heads=32 "
          "kv_heads=8 head_dim=128 rotary_dim=64 tokens=16 q_tokens=1 kv_len=1");
}

TEST_CASE("rope_kv_append refuses what it cannot mean, in words") {
    const auto error_of = [](const std::string& text) {
        std::string error;
        CHECK_FALSE(parse_problem("rope_kv_append dtype=bf16 " + text, &error).has_value());
        return error;
    };
    CHECK(error_of("heads=2 kv_heads=2 head_dim=64 rotary_dim=31 tokens=1").find("even") !=
          std::string::npos);
    CHECK(error_of("heads=2 kv_heads=2 head_dim=64 rotary_dim=66 tokens=1").find("at most head_dim, 64") !=
          std::string::npos);
    CHECK(error_of("heads=128 kv_heads=8 head_dim=64 rotary_dim=64 tokens=16777216").find("2^31") !=
          std::string::npos);
}

TEST_CASE("the floor of rope_kv_append counts q, k, v, results and the rows of the table once") {
    const Problem bare = problem_of("dtype=bf16 heads=4 kv_heads=2 head_dim=64 rotary_dim=32 tokens=7");
    const double indices = 4 * 7;  // a length a sequence
    // Sequences of one token share the first row of the table.
    CHECK(bare.family->work(bare).bytes == 2 * 7 * 2 * (4 + 2 + 2) * 64 + 2 * 16 * 4 + indices);
    CHECK(bare.family->work(bare).flops == 7 * (4 + 2) * 3 * 32);
    const Problem codes = problem_of(
        "dtype=bf16 kv_dtype=fp8_e4m3 slots=yes heads=4 kv_heads=2 head_dim=64 rotary_dim=0 tokens=7");
    CHECK(codes.family->work(codes).bytes == 2 * 7 * (2 * 4 + 2 + 2) * 64 + 7 * 4 * 64 + 4 * 7 + 2 * 2 * 4);
}

TEST_CASE(
    "plain is rope_kv_append's fallback where packets do not divide a half of the head, or half a warp has "
    "too few") {
    const auto variant_of = [](const std::string& text) {
        const Problem problem = problem_of("dtype=bf16 heads=4 kv_heads=2 tokens=64 " + text);
        return std::string(fallback(problem, *representative_device({9, 0, true}))->variant->name);
    };
    CHECK(variant_of("head_dim=128 rotary_dim=128") == "packets");
    CHECK(variant_of("head_dim=80 rotary_dim=20") == "packets");
    CHECK(variant_of("head_dim=77 rotary_dim=10") == "plain");
    CHECK(variant_of("head_dim=196 rotary_dim=196") == "plain");
}

TEST_CASE("accesses are 16 bytes where head_dim and rotary_dim allow, and nothing reaches past a half") {
    const DeviceTraits h100 = *representative_device({9, 0, true});
    const auto vector_of = [&](const std::string& text) {
        return tunable(*fallback(problem_of("heads=4 kv_heads=2 tokens=64 " + text), h100), "vector");
    };
    CHECK(vector_of("dtype=bf16 head_dim=128 rotary_dim=128") == 8);
    CHECK(vector_of("dtype=fp32 head_dim=128 rotary_dim=128") == 4);
    CHECK(vector_of("dtype=bf16 head_dim=128 rotary_dim=0") == 8);
    CHECK(vector_of("dtype=bf16 head_dim=80 rotary_dim=40") == 4);
    CHECK(vector_of("dtype=bf16 head_dim=128 rotary_dim=12") == 2);
}

TEST_CASE("every head of a token has a thread in rope_kv_append") {
    for_every_problem_and_device([](const Problem& problem, const DeviceTraits& traits) {
        const rope_kv_append::RopeProblem p(problem);
        for (const auto& [candidate, predicted] : ranked_space(problem, traits)) {
            INFO(to_string(candidate));
            const Plan plan = candidate.variant->plan(problem, candidate.config, traits);
            REQUIRE(plan.launch_count == 1);
            const Launch& launch = plan.launches[0];
            CHECK(plan.workspace_bytes == 0);
            if (candidate.variant->name == "plain") {
                CHECK(launch.grid.x * std::int64_t{launch.block.x} / 32 >= p.tokens * p.all_heads());
                continue;
            }
            const std::int64_t pairs = p.head_dim / (2 * tunable(candidate, "vector"));
            CHECK(launch.block.x % 32 == 0);
            CHECK(pairs <= 32);
            CHECK(launch.grid.x % p.tokens == 0);
            std::int64_t lanes = 1;
            while (lanes < pairs) lanes *= 2;
            const std::int64_t block_heads = launch.block.x / lanes * tunable(candidate, "heads_a_thread");
            const std::int64_t token_blocks = launch.grid.x / p.tokens;
            CHECK(token_blocks * block_heads >= p.all_heads());
            CHECK((token_blocks - 1) * block_heads < p.all_heads());
        }
    });
}

TEST_CASE("the tuning call writes every token of the cache once, at positions that the table has") {
    for (const char* tail : {"", " slots=yes", " page_size=16", " page_size=16 slots=yes", " page_size=3"}) {
        for (const std::int64_t tokens : {1, 5, 16, 30, 48, 64}) {
            for (const std::int64_t count : {1, 3, 16, 48}) {
                const Problem problem =
                    problem_of("dtype=bf16 heads=2 kv_heads=1 head_dim=64 rotary_dim=64 tokens=" +
                               std::to_string(tokens) + " q_tokens=" + std::to_string(count) + tail);
                INFO(to_string(problem));
                const Argument cache = problem.family->arguments(problem)[rope_kv_append::k_cache];
                CHECK(cache.shape[1] == tokens);
                CHECK(cache.shape[2] * cache.shape[3] == scalar(problem, rope_kv_append::cache_token_stride));
                std::vector<int> written(static_cast<std::size_t>(tokens));
                for (std::int64_t token = 0; token < tokens; ++token) {
                    const Place place = place_of(problem, token);
                    CHECK(place.position >= 0);
                    CHECK(place.position < scalar(problem, rope_kv_append::positions));
                    REQUIRE(place.row >= 0);
                    REQUIRE(place.row < tokens);
                    ++written[static_cast<std::size_t>(place.row)];
                }
                CHECK(std::ranges::all_of(written, [](int times) { return times == 1; }));
            }
        }
    }
}

TEST_CASE("the cost model of rope_kv_append puts what was measured first near the front") {
    const DeviceTraits h100 = *representative_device({9, 0, true});
    const auto first_of = [&](const std::string& text) {
        return ranked_space(problem_of("dtype=bf16 heads=32 kv_heads=8 head_dim=128 rotary_dim=128 " + text),
                            h100)[0];
    };
    CHECK(tunable(first_of("tokens=1").candidate, "heads_a_thread") == 1);
    CHECK(tunable(first_of("tokens=64 norm=yes").candidate, "heads_a_thread") == 1);
    CHECK(tunable(first_of("tokens=8192").candidate, "threads") <= 128);
    CHECK(first_of("tokens=8192").predicted_us == doctest::Approx(73).epsilon(0.1));
    CHECK(first_of("tokens=1").predicted_us == doctest::Approx(1.6).epsilon(0.2));
}
