#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "kernel_templates/catalog.h"
#include "kernel_templates/device/bf16_line.cuh"
#include "kernel_templates/device/int_bits.cuh"
#include "kernel_templates/kit/tunables.h"
#include "kernel_templates/linear/wgmma/schedule.cuh"
#include "kernel_templates/quantized_linear/variants.h"
#include "kernel_templates/quantized_linear/wgmma_w16/plan.h"
#include "kernel_templates/space.h"
#include "tests/kernel_templates/drawn_cases.h"

using namespace hone;

namespace {

const std::vector<std::string> shapes{
    "dtype=bf16 format=w4a16 group=128 in=4096 out=28672",
    "dtype=fp16 format=w4a16 group=32 zeros=yes in=4096 out=1008",
    "dtype=bf16 format=w4a16 group=64 gated=yes activation=silu in=4096 out=14336",
    "dtype=bf16 format=w4a16 zeros=yes bias=yes residual=yes activation=gelu_erf in=1040 out=3584",
    "dtype=fp16 format=w8a16 in=14336 out=4096",
    "dtype=bf16 format=w8a16 gated=yes activation=silu in=4096 out=14336"};

Problem problem_of(const std::string& text) { return *parse_problem("quantized_linear " + text); }

const DeviceTraits h100 = *representative_device({9, 0, true});

/// Calls visit(problem, config) for every allowed config.
template <class Visit>
void for_each_config(const std::vector<std::int64_t>& token_counts, Visit visit) {
    for (const std::string& shape : shapes) {
        for (const std::int64_t tokens : token_counts) {
            const Problem problem = problem_of(shape + " tokens=" + std::to_string(tokens));
            for (const Config& config : test::space_on_h100(problem, quantized_linear::wgmma_w16)) {
                INFO(to_string(problem)
                     << " | " << to_string(Candidate{&quantized_linear::wgmma_w16, config}));
                visit(quantized_linear::QuantizedProblem(problem), problem, config);
            }
        }
    }
}

quantized_linear::w16::Stage stage_of(const quantized_linear::QuantizedProblem& p) {
    return {.bits = p.bits(), .group = static_cast<int>(p.group), .zeros = p.zeros};
}

float half_value(bool bf16, unsigned half) {
    const int mantissa_bits = bf16 ? 7 : 10;
    const int bias = bf16 ? 127 : 15;
    const unsigned exponent = (half & 0x7fffu) >> mantissa_bits;
    const unsigned mantissa = half & ((1u << mantissa_bits) - 1);
    const float magnitude = std::ldexp(static_cast<float>((1u << mantissa_bits) + mantissa),
                                       static_cast<int>(exponent) - bias - mantissa_bits);
    return (half & 0x8000u) != 0 ? -magnitude : magnitude;
}
/// The value of any bf16, subnormal numbers too: exact, as are products and sums of few of them in double.
double bf16_value(unsigned half) {
    const int exponent = static_cast<int>(half >> 7 & 255u);
    const int mantissa = static_cast<int>(half & 127u) + (exponent > 0 ? 128 : 0);
    const double magnitude = std::ldexp(mantissa, std::max(exponent, 1) - 134);
    return (half & 0x8000u) != 0 ? -magnitude : magnitude;
}
/// a * b + c of a half, 0: the low one, times 2^shift.
double line_value(unsigned a, unsigned b, unsigned c, int half) {
    const int by = 16 * half;
    const double value =
        bf16_value(a >> by & 0xffffu) * bf16_value(b >> by & 0xffffu) + bf16_value(c >> by & 0xffffu);
    return std::ldexp(value, bf16_line::shift);
}
float low_value(bool bf16, unsigned pair) { return half_value(bf16, pair & 0xffffu); }
float high_value(bool bf16, unsigned pair) { return half_value(bf16, pair >> 16); }

}  // namespace

TEST_CASE("wgmma_w16: 16-bit x and packed weights have configs for any number of tokens, others none") {
    for (const std::string& shape : shapes) {
        for (const std::int64_t tokens : {9, 16, 33, 64, 100, 512, 2048, 10000}) {
            const Problem problem = problem_of(shape + " tokens=" + std::to_string(tokens));
            INFO(to_string(problem));
            const auto config = quantized_linear::wgmma_w16.fallback(problem, h100);
            REQUIRE(config);
            CHECK(why_not(problem, {&quantized_linear::wgmma_w16, *config}, h100) == "");
        }
    }
    for (const std::string other : {"dtype=bf16 format=w8a8 in=4096 out=4096 tokens=64",
                                    "dtype=bf16 format=fp8 in=4096 out=4096 tokens=64",
                                    "dtype=bf16 format=w8a16 in=4104 out=4096 tokens=64"}) {
        CHECK(enumerate(problem_of(other), quantized_linear::wgmma_w16, h100).empty());
        CHECK(!quantized_linear::wgmma_w16.fallback(problem_of(other), h100));
    }
}

TEST_CASE("wgmma_w16: a stage's copies are multiples of 16 bytes, and launches fit the device") {
    std::set<std::tuple<std::string, std::uint32_t>> seen;
    for_each_config({16, 200, 2048}, [&](const auto& p, const Problem& problem, const Config& config) {
        const quantized_linear::w16::Stage stage = stage_of(p);
        const linear::gemm::Operands operands = stage.operands();
        CHECK(operands.left_pitch * 64 == stage.code_bytes());
        CHECK(operands.left_extra * 64 == stage.scale_bytes() + stage.zero_bytes());
        for (const int bytes : {stage.code_bytes(), stage.scale_bytes(), stage.zero_bytes()})
            CHECK(bytes % 16 == 0);
        const Plan plan = quantized_linear::wgmma_w16.plan(problem, config, h100);
        const Launch& launch = plan.launches[0];
        const auto values = values_of<quantized_linear::WgmmaW16Config>(config);
        CHECK(launch.shared_bytes <= h100.max_shared_bytes_per_block);
        CHECK(launch.shared_bytes + 1024 <= h100.shared_bytes_per_sm / values.blocks_per_sm);
        CHECK(launch.block.x * values.blocks_per_sm <= h100.max_threads_per_sm);
        CHECK(launch.grid.x % launch.cluster.x == 0);
        CHECK(plan.tensor_map_count == 3);
        CHECK((plan.tensor_maps[1].same_as == 0) == (values.staged == 0));
        seen.insert({to_string(problem), launch.shared_bytes});
    });
    CHECK(seen.size() > 50);
}

TEST_CASE(
    "wgmma_w16: a tile without a pause needs what one with pauses needs, registers, and four stages or six") {
    std::set<std::string> found;
    std::set<std::int64_t> forms;
    for_each_config({64, 512}, [&](const auto& p, const Problem& problem, const Config& config) {
        auto values = values_of<quantized_linear::WgmmaW16Config>(config);
        const quantized_linear::w16::Form form = quantized_linear::form_of(values.stages_together);
        if (form.pauses()) return;
        const linear::gemm::Geometry g = quantized_linear::geometry(p, values);
        CHECK(g.stages() >= (form.pairs ? 6 : 4));
        CHECK(g.stages() % form.stage_steps() == 0);
        if (form.turns) CHECK(g.sharers() > 1);
        forms.insert(values.stages_together);
        values.stages_together = 1;
        CHECK(why_not(problem, {&quantized_linear::wgmma_w16, config_of(values)}, h100) == "");
        found.insert(to_string(problem));
    });
    CHECK(found.size() == 2 * shapes.size());
    CHECK(forms == std::set<std::int64_t>{0, 6, 7});
}

TEST_CASE("wgmma_w16: stages that are taken two at a time are whole pairs of every sum") {
    quantized_linear::WgmmaW16Config config{
        {.tile_m = 128, .tile_n = 128, .consumers = 2, .swapped = 1, .staged = 1}, 7};
    const auto refused = [&](const char* fields) {
        const Problem problem =
            *parse_problem(std::string("quantized_linear dtype=bf16 format=w4a16 ") + fields);
        return why_not(problem, {&quantized_linear::wgmma_w16, config_of(config)}, h100) != "";
    };
    CHECK_FALSE(refused("in=1024 out=1024 tokens=512"));
    CHECK(refused("in=1088 out=1024 tokens=512"));  // 17 steps

    config.tail_split = 1;
    CHECK_FALSE(refused("in=1152 out=16912 tokens=144"));
    CHECK(refused("in=1088 out=16912 tokens=144"));
    // 9 pairs in two and in four parts
    const linear::gemm::Geometry g = quantized_linear::geometry(
        quantized_linear::QuantizedProblem(
            *parse_problem("quantized_linear dtype=bf16 format=w4a16 in=1152 out=16912 tokens=144")),
        config);
    linear::gemm::Tiling tiling{.out = 16912,
                                .k_tiles = 18,
                                .k_unit = g.operands.k_unit,
                                .result_rows = static_cast<int>(g.result_rows()),
                                .result_columns = static_cast<int>(g.result_columns()),
                                .swapped = true,
                                .tail_split = true};
    for (int block = 0; block < 132; ++block) {
        const linear::gemm::Schedule schedule(tiling, 144, 132, block, 0);
        for (int i = 0; i < schedule.count(); ++i) CHECK(schedule.work(i).k_count % 2 == 0);
    }
}

TEST_CASE("wgmma_w16: consumers claim no more registers than the producers release") {
    int moving = 0;
    for (const int consumers : {1, 2, 3, 4}) {
        for (const int blocks : {1, 2, 3, 4}) {
            const linear::gemm::Geometry g{.consumers = consumers, .blocks_per_sm = blocks};
            const quantized_linear::w16::Registers r = quantized_linear::w16::registers_of(g);
            CAPTURE(consumers);
            CAPTURE(blocks);
            CHECK(r.launched * g.threads() * blocks <= h100.registers_per_sm);
            if (!r.move()) continue;
            ++moving;
            CHECK(r.producer + consumers * r.consumer <= (1 + consumers) * r.launched);
            CHECK(r.producer <= r.launched);
            CHECK(r.producer % 8 == 0);
            CHECK(r.consumer % 8 == 0);
            CHECK(r.consumer <= 256);
        }
    }
    CHECK(moving == 9);  // not one consumer alone, nor where producers have no more than they need
}

TEST_CASE("wgmma_w16: groups of a stage follow one another over a whole row") {
    for (const int group : {32, 64, 128}) {
        const quantized_linear::w16::Stage stage{.bits = 4, .group = group, .zeros = true};
        for (int column = 0; column < 1024; ++column) {
            const int k = column / 64;
            const int set = column % 64 / 16 * stage.groups() / 4;  // of the step of 16 columns
            CHECK(stage.first_group(k) + set == column / group);
        }
    }
    CHECK(quantized_linear::w16::Stage{}.operands().left_extra == 0);
}

TEST_CASE("wgmma_w16: with a norm the product reads what a launch in front has written") {
    const Problem problem =
        problem_of("dtype=bf16 format=w4a16 group=128 norm=yes in=4096 out=4096 tokens=64");
    const Config config = *quantized_linear::wgmma_w16.fallback(problem, h100);
    const Plan plan = quantized_linear::wgmma_w16.plan(problem, config, h100);
    REQUIRE(plan.launch_count == 2);
    CHECK(std::string(plan.launches[0].kernel->name) == "linear_normalize");
    // The norm's launch takes the place in the call's workspace that the product reads.
    REQUIRE(plan.launches[0].substitution_count == 1);
    CHECK(plan.launches[0].substitutions[0].arg == 2);
    const PlanValue& normalized = plan.values[plan.launches[0].substitutions[0].value];
    CHECK(normalized.pointer == quantized_linear::workspace);
    CHECK(normalized.number == plan.tensor_maps[0].offset_bytes);
    CHECK(plan.tensor_maps[0].pointer == quantized_linear::workspace);
    CHECK(plan.workspace_bytes >= std::int64_t{64} * 4096 * 2);
}

TEST_CASE("codes above a base become numbers exactly") {
    for (const bool bf16 : {true, false}) {
        const unsigned base = bf16 ? int_bits::base_bf16 : int_bits::base_fp16;
        for (unsigned codes = 0; codes < 256; ++codes) {  // every pair of nibbles
            const unsigned bits = int_bits::above_base((codes & 15u) | codes >> 4 << 16 | 0x5a50a5a0u, base);
            for (unsigned zero = 0; zero < 16; ++zero) {
                const float subtracted = low_value(bf16, base + zero);
                CHECK(low_value(bf16, bits) - subtracted ==
                      static_cast<int>(codes & 15u) - static_cast<int>(zero));
                CHECK(high_value(bf16, bits) - subtracted ==
                      static_cast<int>(codes >> 4) - static_cast<int>(zero));
            }
        }
    }
    for (unsigned byte = 0; byte < 256; ++byte) {
        const unsigned bits = int_bits::signed_fp16(byte | (255u - byte) << 16 | 0xa500c300u);
        const float less = low_value(false, int_bits::signed_base_fp16);
        CHECK(low_value(false, bits) - less == static_cast<std::int8_t>(byte));
        CHECK(high_value(false, bits) - less == static_cast<std::int8_t>(255u - byte));
    }
}

TEST_CASE("codes of 4 and 8 bits on bf16's line become numbers exactly") {
    for (unsigned low = 0; low < 16; ++low) {
        const unsigned high = 15 - low;
        const unsigned word = low | high << 4 | high << 16 | low << 20 | 0xc300a500u;
        const unsigned first = bf16_line::low_nibbles(word);
        const unsigned second = bf16_line::high_nibbles(word);
        for (const int half : {0, 1}) {
            const int first_code = static_cast<int>(half == 0 ? low : high);
            CHECK(line_value(first, bf16_line::low_factor, bf16_line::middle_offset, half) == first_code - 8);
            CHECK(line_value(second, bf16_line::high_factor, bf16_line::middle_offset, half) ==
                  15 - first_code - 8);
        }
        const unsigned zero = int_bits::base_bf16 + (low | high << 16);
        CHECK(line_value(zero, bf16_line::zero_factor, bf16_line::zero_offset, 0) == -static_cast<int>(low));
        CHECK(line_value(zero, bf16_line::zero_factor, bf16_line::zero_offset, 1) == -static_cast<int>(high));
    }
    for (unsigned byte = 0; byte < 256; ++byte) {
        const unsigned codes = bf16_line::unsigned_bytes(byte | (255u - byte) << 16 | 0xa500c300u);
        CHECK(line_value(codes, bf16_line::low_factor, bf16_line::byte_offset, 0) ==
              static_cast<std::int8_t>(byte));
        CHECK(line_value(codes, bf16_line::low_factor, bf16_line::byte_offset, 1) ==
              static_cast<std::int8_t>(255u - byte));
    }
}

TEST_CASE("the words of a packed block are fragments of a left operand, as wgmma_w16 widens them") {
    // Thread t of the warpgroup: row 16 w + g and 8 below, columns 2 q, 2 q + 1 and 8 further of every 16.
    std::mt19937 random(3);
    std::vector<std::uint8_t> codes(64 * 64);
    for (auto& code : codes) code = static_cast<std::uint8_t>(random());
    std::vector<std::uint8_t> packed4(2048), packed8(4096);
    for (int row = 0; row < 64; ++row) {
        for (int column = 0; column < 64; ++column) {
            const std::uint8_t code = codes[static_cast<std::size_t>(row * 64 + column)];
            const auto four = quantized_linear::place_w4(row, column, 64);
            packed4[static_cast<std::size_t>(four.byte)] |=
                static_cast<std::uint8_t>((code & 15) << four.bit);
            packed8[static_cast<std::size_t>(quantized_linear::place_w8(row, column, 64).byte)] = code;
        }
    }
    const auto word = [](const std::vector<std::uint8_t>& bytes, int at) {
        std::uint32_t value = 0;
        for (int i = 3; i >= 0; --i) value = value << 8 | bytes[static_cast<std::size_t>(at + i)];
        return value;
    };
    for (int thread = 0; thread < 128; ++thread) {
        for (int step = 0; step < 4; ++step) {
            for (int i = 0; i < 4; ++i) {
                const int row = thread / 32 * 16 + thread % 32 / 4 + i % 2 * 8;
                const auto first =
                    static_cast<std::size_t>(row * 64 + step * 16 + thread % 4 * 2 + i / 2 * 8);
                const unsigned four =
                    int_bits::above_base(word(packed4, thread * 16 + step * 4) >> 4 * i, int_bits::base_bf16);
                CHECK(low_value(true, four) - 128 == (codes[first] & 15));
                CHECK(high_value(true, four) - 128 == (codes[first + 1] & 15));
                const unsigned nibbles = word(packed4, thread * 16 + step * 4) >> (i < 2 ? 0 : 8);
                const unsigned on_line =
                    i % 2 == 0 ? bf16_line::low_nibbles(nibbles) : bf16_line::high_nibbles(nibbles) >> 4;
                CHECK(on_line == ((codes[first] & 15u) | (codes[first + 1] & 15u) << 16));
                const std::uint32_t eight =
                    word(packed8, step / 2 * 2048 + thread * 16 + step % 2 * 8 + i / 2 * 4) >> 8 * (i % 2);
                CHECK((eight & 255u) == codes[first]);
                CHECK((eight >> 16 & 255u) == codes[first + 1]);
            }
        }
    }
}
