#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "kernel_templates/catalog.h"
#include "kernel_templates/quantized_linear/mma/geometry.cuh"
#include "kernel_templates/quantized_linear/quantized_linear.h"
#include "kernel_templates/quantized_linear/variants.h"
#include "kernel_templates/space.h"
#include "tests/kernel_templates/drawn_cases.h"

using namespace hone;
using namespace hone::quantized_linear;
using test::tunable;

namespace {

Problem problem_of(const std::string& text) { return *parse_problem("quantized_linear " + text); }

std::string error_of(const std::string& text) {
    std::string error;
    CHECK_FALSE(parse_problem("quantized_linear " + text, &error).has_value());
    return error;
}

const Argument& argument(const std::vector<Argument>& arguments, std::string_view name) {
    const auto found = std::ranges::find(arguments, name, &Argument::name);
    REQUIRE(found != arguments.end());
    return *found;
}

struct Sizes {
    long long out, in;
};
constexpr Sizes odd_sizes[] = {{1, 1}, {64, 64}, {65, 63}, {130, 200}, {16, 129}};

}  // namespace

TEST_CASE("the fields of quantized_linear stand in their order, with their defaults") {
    CHECK(to_string(problem_of("dtype=bf16 format=w4a16 in=4096 out=11008 tokens=16")) ==
          "quantized_linear dtype=bf16 format=w4a16 group=0 zeros=no quantized_x=no norm=no activation=none "
          "gated=no bias=no residual=no in=4096 out=11008 tokens=16");
}

TEST_CASE(
    "a row of one group may be off by as much as one with a scale for all columns, one of many by less") {
    const auto allowed = [](const std::string& text) {
        const Problem problem = problem_of("dtype=bf16 format=w4a16 out=64 tokens=1 " + text);
        return problem.family->tolerance(problem, 0).max_abs;
    };
    CHECK(allowed("group=128 in=128") == allowed("in=128"));
    CHECK(allowed("group=64 in=128") > 1.2 * allowed("group=32 in=4096"));
    CHECK(allowed("group=64 in=128") < allowed("group=128 in=128"));
    CHECK(1.4 * allowed("group=128 in=4096") < allowed("in=4096"));
}

TEST_CASE("quantized_linear refuses what it cannot mean, in words") {
    const std::string sizes = " in=192 out=64 tokens=1 ";
    const std::string w4 = "dtype=bf16 format=w4a16" + sizes;
    const std::string w8 = "dtype=bf16 format=w8a16" + sizes;
    const std::string fp8 = "dtype=bf16 format=fp8" + sizes;
    const auto says = [](const std::string& problem, const char* words) {
        INFO(problem);
        CHECK(error_of(problem).find(words) != std::string::npos);
    };
    says("dtype=fp32 format=w4a16" + sizes, "dtype=fp32");
    says(w4 + "group=48", "allowed: 32, 64, 128, 0");
    says(w4 + "group=128", "does not divide in=192");
    says(w8 + "group=64", "scale a row");
    says("dtype=bf16 format=w8a8 group=32" + sizes, "scale a row");
    says(fp8 + "group=64", "blocks of 128 columns");
    says(fp8 + "group=128", "does not divide in=192");
    says(w8 + "zeros=yes", "zeros=yes");
    says(w4 + "quantized_x=yes", "quantized_x=yes");
    says(fp8 + "quantized_x=yes norm=yes", "norm=yes");
    says(w4 + "gated=yes", "activation");
    says(w4 + "gated=yes activation=silu bias=yes", "bias");
    says(w4 + "gated=yes activation=silu residual=yes", "residual");
    says("dtype=bf16 format=fp8 in=262144 out=8 tokens=16777216", "2^40");
    says("dtype=bf16 format=fp8 in=8 out=1048576 tokens=16777216", "2^40");
}

TEST_CASE("every code of 4 bits has its own half of a byte, and all bytes are taken") {
    for (const auto [out, in] : odd_sizes) {
        std::set<std::pair<long long, int>> places;
        const long long padded_in = whole_blocks(in) * 64;
        for (long long row = 0; row < whole_blocks(out) * 64; ++row) {
            for (long long column = 0; column < padded_in; ++column) {
                const CodePlace place = place_w4(row, column, in);
                CHECK((place.bit == 0 || place.bit == 4));
                CHECK((place.byte >= 0 && place.byte < packed_bytes(out, in, 4)));
                places.emplace(place.byte, place.bit);
            }
        }
        CHECK(static_cast<long long>(places.size()) == 2 * packed_bytes(out, in, 4));
    }
}

TEST_CASE("every code of 8 bits has its own byte, and all bytes are taken") {
    for (const auto [out, in] : odd_sizes) {
        std::set<long long> places;
        for (long long row = 0; row < whole_blocks(out) * 64; ++row) {
            for (long long column = 0; column < whole_blocks(in) * 64; ++column) {
                const CodePlace place = place_w8(row, column, in);
                CHECK(place.bit == 0);
                CHECK((place.byte >= 0 && place.byte < packed_bytes(out, in, 8)));
                places.insert(place.byte);
            }
        }
        CHECK(static_cast<long long>(places.size()) == packed_bytes(out, in, 8));
    }
}

TEST_CASE("every scale has its own place, and a thread's two rows stand side by side") {
    for (const auto [out, in] : odd_sizes) {
        for (const long long group : {0, 32, 64, 128}) {
            const long long groups = groups_of(in, group);
            const long long rows = whole_blocks(out) * 64;
            std::set<long long> places;
            for (long long row = 0; row < rows; ++row) {
                for (long long g = 0; g < groups; ++g) {
                    const long long place = scale_place(row, g, groups);
                    CHECK((place >= 0 && place < rows * groups));
                    places.insert(place);
                    if (row % 16 < 8) CHECK(scale_place(row + 8, g, groups) == place + 1);
                }
            }
            CHECK(static_cast<long long>(places.size()) == rows * groups);
        }
    }
}

TEST_CASE("a thread of the warpgroup has the codes of a left operand, in the order of its registers") {
    // The fragment of mma m16n8k16: register i has row g (i even) or g + 8, columns 2t and 2t + 1 (i < 2) or
    // 8 further; the first of the two in its low half.
    constexpr long long in = 128;
    for (int thread = 0; thread < 128; ++thread) {
        const int g = thread % 32 / 4;
        const int t = thread % 4;
        for (int step = 0; step < 4; ++step) {
            for (int i = 0; i < 4; ++i) {
                for (int half = 0; half < 2; ++half) {
                    const int row = thread / 32 * 16 + g + i % 2 * 8;
                    const int column = 64 + step * 16 + 2 * t + i / 2 * 8 + half;
                    const CodePlace four = place_w4(row, column, in);
                    CHECK(four.byte * 8 + four.bit ==
                          (2048 + thread * 16 + step * 4) * 8 + 16 * half + 4 * i);
                    const CodePlace eight = place_w8(row, column, in);
                    const int word = step % 2 * 2 + i / 2;
                    CHECK(eight.byte == 4096 + step / 2 * 2048 + thread * 16 + word * 4 + 2 * half + i % 2);
                }
            }
        }
    }
}

TEST_CASE("the arguments of quantized_linear have the sizes of their formats") {
    const auto of = [](const std::string& text) {
        const Problem problem = problem_of(text);
        return problem.family->arguments(problem);
    };
    const auto w4 = of("dtype=bf16 format=w4a16 group=32 zeros=yes in=96 out=100 tokens=7");
    CHECK(argument(w4, "x").bytes() == 7 * 96 * 2);
    CHECK(argument(w4, "weight").bytes() == packed_bytes(100, 96, 4));
    CHECK(argument(w4, "scales").bytes() == 2 * 4 * 64 * 2);  // 4 groups of 32 in two blocks
    CHECK(argument(w4, "zeros").bytes() == 2 * 4 * 64);
    CHECK(argument(w4, "x_scales").bytes() == 0);
    CHECK(argument(w4, "up").bytes() == 0);
    const auto w8 = of("dtype=fp16 format=w8a16 gated=yes activation=silu in=96 out=100 tokens=7");
    CHECK(argument(w8, "weight").bytes() == packed_bytes(100, 96, 8));
    CHECK(argument(w8, "up").bytes() == packed_bytes(100, 96, 8));
    CHECK(argument(w8, "up_scales").bytes() == 4 * 100);
    const auto int8 = of("dtype=fp16 format=w8a8 quantized_x=yes in=97 out=100 tokens=7");
    CHECK(argument(int8, "x").bytes() == 7 * 97);
    CHECK(argument(int8, "x_scales").bytes() == 7 * 4);
    CHECK(argument(int8, "weight").bytes() == 97 * 100);
    CHECK(argument(int8, "scales").bytes() == 4 * 100);
    const auto fp8 = of("dtype=bf16 format=fp8 group=128 quantized_x=yes in=384 out=130 tokens=7");
    CHECK(argument(fp8, "x_scales").bytes() == 7 * 3 * 4);
    CHECK(argument(fp8, "scales").bytes() == 2 * 3 * 4);
    CHECK(argument(fp8, "out").bytes() == 7 * 130 * 2);
}

TEST_CASE("the fallback of quantized_linear is on tensor cores where the sizes and the chip allow") {
    const auto variant_of = [](const std::string& text, Arch arch) {
        return std::string(fallback(problem_of(text), *representative_device(arch))->variant->name);
    };
    const std::string sizes = " in=4096 out=4096 tokens=16";
    for (const char* format : {"w4a16 group=128", "w8a16", "w8a8", "fp8 group=128"}) {
        for (const Arch arch : {Arch{8, 0, false}, Arch{8, 9, false}})
            CHECK(variant_of(std::string("dtype=bf16 format=") + format + sizes, arch) == "mma");
        CHECK(variant_of(std::string("dtype=fp16 format=") + format + sizes, {7, 5, false}) == "mma");
    }
    CHECK(variant_of("dtype=bf16 format=w4a16" + sizes, {7, 5, false}) == "plain");
    CHECK(variant_of("dtype=bf16 format=w8a8" + sizes, {7, 5, false}) == "mma");
    CHECK(variant_of("dtype=bf16 format=w4a16 in=4090 out=4096 tokens=16", {8, 0, false}) == "plain");
}

TEST_CASE("few tokens of packed weights fall back to stream, or to walk and ring, where these are faster") {
    const auto variants_of = [](const std::string& text, Arch arch) {
        std::string names;
        for (const char* tokens : {"1", "2", "3", "4"}) {
            const Problem problem = problem_of("dtype=bf16 format=" + text + " tokens=" + tokens);
            const Candidate chosen = fallback(problem, *representative_device(arch)).value();
            names += std::string(names.empty() ? "" : " ") + std::string(chosen.variant->name);
        }
        return names;
    };
    const Arch hopper{9, 0, true};
    const std::string gated = " gated=yes activation=silu in=4096 out=14336";
    CHECK(variants_of("w4a16 group=128 in=14336 out=4096", hopper) == "stream ring ring ring");
    CHECK(variants_of("w4a16 group=128 in=2048 out=2048", hopper) == "stream stream ring ring");
    CHECK(variants_of("w4a16 group=128" + gated, hopper) == "walk walk ring ring");
    CHECK(variants_of("w4a16 group=128 gated=yes activation=silu in=1024 out=3072", hopper) ==
          "stream stream ring ring");
    CHECK(variants_of("w8a16" + gated, hopper) == "stream ring ring ring");
    CHECK(variants_of("w4a16 group=128 norm=yes in=4096 out=4096", hopper) == "stream stream stream stream");
    CHECK(variants_of("w4a16 group=128" + gated, {8, 0, false}) == "stream stream stream stream");
}

TEST_CASE("plain takes every problem of quantized_linear") {
    test::for_every_problem_and_device(
        *find_family("quantized_linear"), 100, [](const Problem& problem, const DeviceTraits& traits) {
            const std::optional<Config> config = plain.fallback(problem, traits);
            REQUIRE(config);
            CHECK(allowed(problem, {&plain, *config}, traits));
        });
}

TEST_CASE("every spot of the result has a block of mma or plain") {
    test::for_every_problem_and_device(
        *find_family("quantized_linear"), 24, [](const Problem& problem, const DeviceTraits& traits) {
            const QuantizedProblem p(problem);
            const int preparations = p.norm || p.quantizes_x() ? 1 : 0;
            for (const Variant* variant : {&mma, &plain}) {
                test::for_some_candidates(problem, *variant, traits, 20, [&](const Candidate& candidate) {
                    const Plan plan = variant->plan(problem, candidate.config, traits);
                    REQUIRE(plan.launch_count == preparations + 1);
                    const bool is_mma = variant == &mma;
                    const std::int64_t tokens = tunable(candidate, is_mma ? "tokens" : "tile_tokens");
                    const std::int64_t rows =
                        is_mma ? tunable(candidate, "rows") * tunable(candidate, "row_warps")
                               : tunable(candidate, "tile_out");
                    CHECK(plan.launches[static_cast<std::size_t>(preparations)].grid.x ==
                          ceil_div(p.tokens, tokens) * ceil_div(p.out, rows));
                });
            }
        });
}

TEST_CASE("the partial sums that mma's warps write together fall into distinct banks") {
    for (const int rows : {16, 32, 64}) {
        for (const int row_warps : {1, 2, 4}) {
            const mma_blocks::Geometry g{.tokens = 8,
                                         .rows = rows,
                                         .k_warps = 2,
                                         .row_warps = row_warps,
                                         .unroll = 1,
                                         .products = 1,
                                         .x_bytes = 2,
                                         .blocks_scaled = false};
            std::set<int> banks;
            for (int lane = 0; lane < 32; ++lane)
                banks.insert((lane % 4 * 2 * g.partial_pitch() + lane / 4) % 32);
            CHECK(banks.size() == 32);
            CHECK(g.shared_bytes() >= 2 * g.buffer_bytes());
        }
    }
}
