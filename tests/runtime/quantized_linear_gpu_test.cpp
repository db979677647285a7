// Every variant of quantized_linear on the GPU against double arithmetic on the host: all formats, groups and
// zero points, packed by hone/quantize.h from plain codes; x as it is and as codes; odd sizes, strides,
// scales of every kind, and NaN wherever nobody may look.
#include <doctest/doctest.h>

#include <string>

#include "kernel_templates/kit/tunables.h"
#include "kernel_templates/quantized_linear/variants.h"
#include "kernel_templates/quantized_linear/wgmma_w16/plan.h"
#include "tests/runtime/quantized_linear_case.h"

using namespace hone;
using namespace hone::test;

namespace {

void check_candidate(const QuantizedCase& quantized, const Candidate& candidate, int launches = 1) {
    INFO(to_string(quantized.problem()) << " | " << to_string(candidate));
    CHECK(quantized.fault_of(quantized.run(candidate, launches)) == "");
}

void check_problem(const std::string& text, std::size_t each = 1, QuantizedLayout layout = {}) {
    const QuantizedCase quantized(text, layout);
    for (const Candidate& candidate : sample_of(quantized, each)) check_candidate(quantized, candidate);
}

void check_with(const std::string& text, TunableRange wanted, std::size_t count, int launches = 1) {
    const QuantizedCase quantized(text);
    for (const Candidate& candidate : sample_with(quantized.problem(), wanted, count))
        check_candidate(quantized, candidate, launches);
}

/// `count` configs of one variant.
void check_variant(std::string_view name, const std::string& text, std::size_t count, int launches = 1,
                   QuantizedLayout layout = {}) {
    const QuantizedCase quantized(text, layout);
    const Variant* variant = find_variant(*quantized.problem().family, name);
    if (!runs_on(*variant, Bench::get().traits)) return;
    for (const Candidate& candidate : sample_variant(quantized.problem(), *variant, count))
        check_candidate(quantized, candidate, launches);
}

/// Whether the numbers that dequantize's product reads are `values`, rounded to the element type: w8a16's by
/// way of float32.
void check_numbers(const Problem& problem, const std::vector<std::byte>& workspace, const TensorMap& map,
                   const std::vector<double>& values) {
    const quantized_linear::QuantizedProblem p(problem);
    REQUIRE(map.pointer == quantized_linear::workspace);
    HostTensor numbers(p.dtype, p.out, p.in, p.in);
    const auto first = workspace.begin() + map.offset_bytes;
    std::copy(first, first + static_cast<std::ptrdiff_t>(numbers.bytes.size()), numbers.bytes.begin());
    std::int64_t wrong = 0;
    for (std::int64_t row = 0; row < p.out; ++row) {
        for (std::int64_t column = 0; column < p.in; ++column) {
            const double value = values[static_cast<std::size_t>(row * p.in + column)];
            const double want = p.format == QuantFormat::w8a16 ? static_cast<float>(value) : value;
            if (numbers.at(row, column) != round_to(p.dtype, want)) ++wrong;
        }
    }
    CHECK(wrong == 0);
}

std::string tokens_text(std::int64_t tokens) { return " tokens=" + std::to_string(tokens); }

constexpr std::array<std::int64_t, 7> token_counts{1, 3, 7, 16, 40, 100, 200};

}  // namespace

// Compiling takes most of the time: 20 to 50 images a case, so that all cases together take as long as one.

// Small enough to run under a sanitizer (tests/run_gpu_tests.py --sanitize).
TEST_CASE("small calls of every variant of quantized_linear are right") {
    check_problem("dtype=bf16 format=w4a16 group=64 zeros=yes in=192 out=80 tokens=9");
    check_problem("dtype=fp16 format=w8a16 gated=yes activation=silu in=128 out=64 tokens=3");
    check_problem("dtype=bf16 format=w8a8 bias=yes residual=yes in=128 out=80 tokens=9");
    check_problem("dtype=bf16 format=fp8 group=128 quantized_x=yes in=256 out=144 tokens=20");
    check_problem("dtype=bf16 format=w4a16 group=64 zeros=yes norm=yes residual=yes in=192 out=80 tokens=3");
    check_problem("dtype=bf16 format=w4a16 norm=yes gated=yes activation=silu in=192 out=80 tokens=1");
    check_variant("dequantize", "dtype=bf16 format=w4a16 group=64 zeros=yes in=192 out=80 tokens=257", 1);
    check_variant("dequantize",
                  "dtype=fp16 format=w8a16 gated=yes activation=silu norm=yes in=72 out=64 tokens=257", 1);
}

TEST_CASE("weights of 4 bits are right for every number of tokens") {
    for (const std::int64_t tokens : token_counts)
        check_problem("dtype=bf16 format=w4a16 group=128 in=1152 out=208" + tokens_text(tokens));
}

TEST_CASE("weights of 8 bits under x of 16 are right for every number of tokens") {
    for (const std::int64_t tokens : token_counts)
        check_problem("dtype=bf16 format=w8a16 in=1088 out=208" + tokens_text(tokens));
}

TEST_CASE("int8 codes of weight and x are right for every number of tokens") {
    for (const std::int64_t tokens : token_counts)
        check_problem("dtype=bf16 format=w8a8 quantized_x=yes in=1088 out=208" + tokens_text(tokens));
}

TEST_CASE("fp8 codes of weight and x are right for every number of tokens") {
    for (const std::int64_t tokens : token_counts)
        check_problem("dtype=bf16 format=fp8 quantized_x=yes in=1088 out=208" + tokens_text(tokens));
}

TEST_CASE("fp8 codes with scales of blocks are right for every number of tokens") {
    for (const std::int64_t tokens : token_counts)
        check_problem("dtype=bf16 format=fp8 group=128 quantized_x=yes in=1152 out=208" +
                      tokens_text(tokens));
}

TEST_CASE("weights of 4 bits are right in groups of every size") {
    for (const char* group : {"group=0", "group=32", "group=64", "group=128"}) {
        const std::string text = std::string(" format=w4a16 in=1152 out=208 ") + group;
        check_problem("dtype=fp16" + text + tokens_text(5));
        check_problem("dtype=bf16" + text + tokens_text(50));
    }
}

TEST_CASE("weights of 4 bits with zero points are right in groups of every size") {
    for (const char* group : {"group=0", "group=32", "group=64", "group=128"}) {
        const std::string text = std::string(" format=w4a16 zeros=yes in=1152 out=208 ") + group;
        check_problem("dtype=fp16" + text + tokens_text(70));
        check_problem("dtype=bf16" + text + tokens_text(4));
    }
}

TEST_CASE("quantized_linear is right where blocks of the weight have padding") {
    for (const std::int64_t tokens : {7, 100}) {
        for (const char* format : {"w4a16 group=32 zeros=yes", "w4a16 zeros=yes", "w8a16"}) {
            for (const char* sizes : {" in=96 out=71", " in=96 out=80"})
                check_problem(std::string("dtype=bf16 format=") + format + sizes + tokens_text(tokens));
        }
    }
}

TEST_CASE("quantized_linear of codes is right at sizes that no tile divides") {
    for (const std::int64_t tokens : {3, 150}) {
        for (const char* format : {"w8a8 quantized_x=yes", "w8a8", "fp8"}) {
            for (const char* sizes : {" in=1104 out=71", " in=96 out=80"})
                check_problem(std::string("dtype=fp16 format=") + format + sizes + tokens_text(tokens));
        }
    }
}

TEST_CASE("quantized_linear is right at odd sizes") {
    for (const char* format : {"w4a16", "w4a16 zeros=yes", "w8a16", "w8a8", "w8a8 quantized_x=yes", "fp8"}) {
        const std::string text = std::string("dtype=bf16 format=") + format;
        check_problem(text + " in=77 out=71 tokens=3");
        check_problem(text + " in=100 out=208 tokens=40");
    }
    check_problem("dtype=fp16 format=w4a16 in=1 out=1 tokens=1");
    check_problem("dtype=fp16 format=fp8 in=33 out=130 tokens=19 gated=yes activation=silu");
}

TEST_CASE("packed weights are right with every activation, with bias and residual") {
    for (const char* activation : {"none", "gelu_tanh", "gelu_erf", "silu", "relu"}) {
        const std::string text = std::string(" bias=yes in=192 activation=") + activation;
        check_problem("dtype=bf16 format=w4a16 group=64 residual=yes out=208 tokens=20" + text);
        check_problem("dtype=fp16 format=w8a16 out=71 tokens=5" + text);
    }
}

TEST_CASE("codes are right with every activation, with bias and residual") {
    for (const char* activation : {"none", "gelu_tanh", "gelu_erf", "silu", "relu"}) {
        const std::string text = std::string(" residual=yes activation=") + activation;
        check_problem("dtype=bf16 format=w8a8 bias=yes in=192 out=208 tokens=150" + text);
        check_problem("dtype=fp16 format=fp8 quantized_x=yes in=256 out=71 tokens=20" + text);
    }
}

TEST_CASE("gated packed weights are right for every number of tokens") {
    for (const std::int64_t tokens : {1, 12, 50, 150}) {
        check_problem("dtype=bf16 format=w4a16 group=128 gated=yes activation=silu in=640 out=208" +
                      tokens_text(tokens));
        check_problem("dtype=fp16 format=w8a16 gated=yes activation=gelu_tanh in=528 out=80" +
                      tokens_text(tokens));
    }
}

TEST_CASE("gated codes are right for every number of tokens") {
    for (const std::int64_t tokens : {1, 12, 50, 150}) {
        check_problem("dtype=bf16 format=w8a8 gated=yes activation=silu in=528 out=208" +
                      tokens_text(tokens));
        check_problem(
            "dtype=bf16 format=fp8 group=128 quantized_x=yes gated=yes activation=relu in=640 out=144" +
            tokens_text(tokens));
    }
}

TEST_CASE("quantized_linear behind a norm is right") {
    for (const std::int64_t tokens : {1, 30, 150}) {
        check_problem("dtype=bf16 norm=yes format=w4a16 group=64 zeros=yes in=576 out=208" +
                      tokens_text(tokens));
        check_problem("dtype=bf16 norm=yes format=w8a8 in=528 out=208" + tokens_text(tokens));
        check_problem("dtype=bf16 norm=yes format=fp8 group=128 gated=yes activation=silu in=640 out=80" +
                      tokens_text(tokens));
    }
    check_problem("dtype=fp16 norm=yes format=w8a16 residual=yes in=77 out=71 tokens=5");
    check_problem("dtype=bf16 norm=yes format=w8a8 in=18944 out=16 tokens=5");  // more than threads keep
}

TEST_CASE("a norm is part of the products of packed weights for few tokens") {
    for (const char* variant : {"walk", "stream"}) {
        CAPTURE(variant);
        for (const std::int64_t tokens : {1, 2, 3, 4}) {
            check_variant(variant,
                          "dtype=bf16 norm=yes format=w4a16 group=128 in=4096 out=1040" + tokens_text(tokens),
                          3, 5);
            check_variant(
                variant,
                "dtype=bf16 norm=yes gated=yes activation=silu format=w4a16 group=64 in=1088 out=1040" +
                    tokens_text(tokens),
                2, 5);
        }
        check_variant(
            variant,
            "dtype=bf16 norm=yes residual=yes format=w4a16 group=32 zeros=yes in=1120 out=4400 tokens=3", 3,
            5);
        check_variant(variant, "dtype=bf16 norm=yes bias=yes format=w8a16 in=18944 out=80 tokens=2", 2);
        check_variant(variant, "dtype=fp16 norm=yes format=w4a16 group=128 in=4096 out=1040 tokens=1", 2);
        check_variant(variant, "dtype=bf16 residual=yes format=w4a16 group=128 in=14336 out=4096 tokens=1", 3,
                      5);
    }
}

TEST_CASE("x becomes codes as the reference's does, rows of zeros too") {
    const QuantizedLayout layout{.behind_x = 16, .zero_rows = true};
    for (const std::int64_t tokens : {4, 40, 200}) {
        check_problem("dtype=bf16 format=w8a8 in=1088 out=208" + tokens_text(tokens), 1, layout);
        check_problem("dtype=fp16 format=fp8 in=1088 out=208" + tokens_text(tokens), 1, layout);
        check_problem("dtype=bf16 format=fp8 group=128 in=1152 out=208" + tokens_text(tokens), 1, layout);
    }
    check_problem("dtype=fp16 format=w8a8 norm=yes bias=yes in=384 out=80 tokens=20", 1, layout);
}

TEST_CASE("one scale for a whole weight, and one for all tokens, is right") {
    for (const std::int64_t tokens : {1, 16, 150}) {
        for (const char* format : {"w8a8", "fp8"}) {
            const std::string text =
                std::string("dtype=bf16 in=336 out=208 format=") + format + tokens_text(tokens);
            check_problem(text, 1, {.one_scale = true});
            check_problem(text + " quantized_x=yes", 1, {.one_scale = true, .one_x_scale = true});
        }
    }
}

TEST_CASE("quantized_linear with strides is right, and what stands between the rows is not touched") {
    const QuantizedLayout layout{
        .behind_x = 16, .behind_x_scales = 3, .behind_weight = 32, .behind_residual = 48, .behind_out = 64};
    for (const std::int64_t tokens : {1, 17, 150}) {
        check_problem("dtype=bf16 format=w4a16 group=32 residual=yes in=352 out=208" + tokens_text(tokens), 1,
                      layout);
        check_problem("dtype=fp16 format=w8a8 quantized_x=yes gated=yes activation=silu in=352 out=208" +
                          tokens_text(tokens),
                      1, layout);
        check_problem("dtype=bf16 format=fp8 group=128 quantized_x=yes residual=yes in=384 out=208" +
                          tokens_text(tokens),
                      1, layout);
    }
    const QuantizedLayout odd{.behind_x = 1, .behind_x_scales = 1, .behind_weight = 3, .behind_out = 5};
    for (const char* format : {"w4a16 zeros=yes", "w8a16 norm=yes", "w8a8", "fp8 quantized_x=yes"})
        check_problem(std::string("dtype=bf16 in=77 out=71 tokens=20 format=") + format, 1, odd);
}

TEST_CASE("quantized_linear may write over its residual") {
    for (const std::int64_t tokens : {1, 30, 200}) {
        for (const char* format : {"w4a16 group=64", "w8a8"}) {
            const QuantizedCase quantized(std::string("dtype=bf16 residual=yes in=320 out=144 format=") +
                                          format + tokens_text(tokens));
            for (const Candidate& candidate : sample(quantized.problem(), 1)) {
                INFO(to_string(quantized.problem()) << " | " << to_string(candidate));
                CHECK(quantized.fault_of(quantized.run_in_place(candidate)) == "");
            }
        }
    }
}

TEST_CASE("blocks of ring without a cluster are right in calls back to back") {
    const QuantizedCase quantized("dtype=bf16 format=w4a16 group=128 in=4096 out=128 tokens=1");
    const auto candidate = parse_candidate(
        *quantized.problem().family,
        "ring tokens=8 rows=64 warp_rows=32 k_warps=2 stage_columns=256 stages=4 cluster_k=1 tiles=1 "
        "blocks_per_sm=2 x_streams=0 programmatic=1");
    REQUIRE(candidate);
    if (!allowed(quantized.problem(), *candidate, Bench::get().traits)) return;
    check_candidate(quantized, *candidate, 20);
}

TEST_CASE("walk is right over many groups of rows, in calls back to back") {
    check_variant("walk", "dtype=bf16 format=w4a16 group=128 in=512 out=8592 tokens=1", 4, 20);
    check_variant("walk", "dtype=fp16 format=w4a16 group=32 zeros=yes in=1088 out=4400 tokens=3", 4, 5);
    check_variant(
        "walk", "dtype=bf16 format=w4a16 zeros=yes gated=yes activation=silu in=272 out=4400 tokens=2", 4, 5);
    check_variant("walk", "dtype=fp16 format=w8a16 norm=yes residual=yes in=1040 out=4408 tokens=4", 4, 5);
    check_variant("walk", "dtype=bf16 format=fp8 group=128 quantized_x=yes in=640 out=8592 tokens=5", 4, 5);
    check_variant("walk", "dtype=bf16 format=w8a8 bias=yes in=1040 out=4400 tokens=8", 4, 5);
    check_variant("walk", "dtype=bf16 format=fp8 residual=yes in=2064 out=8592 tokens=1", 4, 20);
    check_variant("walk", "dtype=fp16 format=fp8 group=128 in=1152 out=4400 tokens=7", 4, 5);
    check_variant("walk", "dtype=fp16 format=w8a8 norm=yes in=1040 out=4400 tokens=2", 4, 5);
}

TEST_CASE("ring_w8 is right for every number of tokens, wherever x comes from, in calls back to back") {
    for (const std::int64_t tokens : {1, 2, 3, 5, 8, 12, 16}) {
        const std::string number = tokens_text(tokens);
        SUBCASE(number.c_str()) {
            const std::string sizes = " in=1040 out=4112" + number;
            for (const std::int64_t place : {0, 1, 2}) {
                const TunableRange from{"x_place", place, place};
                check_with("dtype=bf16 format=fp8 residual=yes" + sizes, from, 3, 5);
                check_with("dtype=fp16 format=w8a8 bias=yes" + sizes, from, 3, 5);
                check_with(
                    "dtype=bf16 format=fp8 group=128 gated=yes activation=silu in=640 out=4112" + number,
                    from, 3, 5);
                if (place == 0) continue;
                check_with("dtype=bf16 format=w8a8 norm=yes gated=yes activation=gelu_tanh" + sizes, from, 2,
                           5);
                check_with("dtype=fp16 format=fp8 quantized_x=yes" + sizes, from, 2, 5);
                check_with(
                    "dtype=bf16 format=fp8 group=128 quantized_x=yes residual=yes in=1152 out=4112" + number,
                    from, 2, 5);
            }
        }
    }
}

TEST_CASE("ring_w8 is right where x is long, blocks take many tiles and rows have strides") {
    const QuantizedLayout layout{
        .behind_x = 16, .behind_x_scales = 3, .behind_weight = 32, .behind_residual = 48, .behind_out = 64};
    check_variant("ring_w8", "dtype=bf16 format=fp8 in=14336 out=1040 tokens=1", 5, 20);
    check_variant("ring_w8", "dtype=bf16 format=w8a8 in=14352 out=1040 tokens=16", 5, 5);
    check_variant("ring_w8", "dtype=bf16 format=fp8 group=128 in=14336 out=1040 tokens=7", 5, 5);
    check_variant("ring_w8", "dtype=bf16 format=fp8 in=256 out=28688 tokens=3", 5, 5);
    check_variant("ring_w8", "dtype=fp16 format=w8a8 gated=yes activation=silu in=400 out=17008 tokens=9", 5,
                  5);
    check_variant("ring_w8",
                  "dtype=fp16 format=w8a8 quantized_x=yes gated=yes activation=silu in=352 out=2064 tokens=5",
                  5, 1, layout);
    check_variant("ring_w8", "dtype=bf16 format=fp8 residual=yes in=352 out=2064 tokens=12", 5, 1, layout);
    check_variant("ring_w8", "dtype=bf16 format=fp8 group=128 quantized_x=yes in=384 out=2064 tokens=2", 5, 1,
                  layout);
}

// Small enough to run under a sanitizer (tests/run_gpu_tests.py --sanitize).
TEST_CASE("small calls of ring_w8 are right") {
    check_variant("ring_w8", "dtype=bf16 format=fp8 residual=yes in=1040 out=272 tokens=1", 7);
    check_variant("ring_w8", "dtype=fp16 format=w8a8 bias=yes in=1040 out=272 tokens=5", 5);
    check_variant("ring_w8",
                  "dtype=bf16 format=fp8 group=128 gated=yes activation=silu in=1024 out=272 tokens=16", 5);
}

TEST_CASE("x is right where it passes through the ring") {
    const TunableRange streams{"x_streams", 1, 1};
    check_with("dtype=bf16 format=w4a16 group=128 in=4096 out=208 tokens=16", streams, 4, 20);
    check_with("dtype=fp16 format=w4a16 group=32 zeros=yes gated=yes activation=silu in=1088 out=80 tokens=1",
               streams, 3, 20);
    check_with("dtype=bf16 format=w8a16 norm=yes residual=yes in=3088 out=208 tokens=50", streams, 3, 20);
}

TEST_CASE("sums that no cluster splits are right in calls back to back") {
    const TunableRange alone{"cluster_k", 1, 1};
    check_with("dtype=bf16 format=w4a16 group=128 in=4096 out=128 tokens=1", alone, 3, 20);
    check_with("dtype=fp16 format=w8a16 norm=yes in=2048 out=208 tokens=16", alone, 2, 20);
    check_with("dtype=bf16 format=w4a16 zeros=yes gated=yes activation=silu in=1088 out=80 tokens=64", alone,
               2, 20);
    check_with("dtype=bf16 format=w8a8 in=1088 out=208 tokens=16", alone, 2, 20);
}

TEST_CASE("sums that a cluster splits are right in calls back to back") {
    const TunableRange split{"cluster_k", 2, 8};
    check_with("dtype=bf16 format=w4a16 group=32 zeros=yes in=4096 out=128 tokens=5", split, 3, 20);
    check_with("dtype=fp16 format=w8a16 bias=yes activation=relu in=3088 out=80 tokens=40", split, 3, 20);
    check_with("dtype=bf16 format=w4a16 gated=yes activation=silu in=4096 out=64 tokens=100", split, 3, 20);
    check_with("dtype=bf16 format=fp8 group=128 in=4096 out=64 tokens=40", split, 3, 20);
    check_with("dtype=fp16 format=w8a8 quantized_x=yes in=3088 out=80 tokens=150", split, 3, 20);
}

TEST_CASE("small sums of codes that blocks of a cluster send each other are right in calls back to back") {
    const std::vector<TunableRange> sent{{"cluster_k", 2, 8}, {"staged", 2, 2}};
    const std::vector<TunableRange> in_pairs{{"tail_split", 2, 2}};
    const auto check = [](const char* text, const std::vector<TunableRange>& wanted, int launches) {
        const QuantizedCase quantized(text);
        const std::vector<Candidate> chosen = sample_with(quantized.problem(), wanted, 4);
        CHECK(chosen.empty() != runs_on(quantized_linear::wgmma_w16, Bench::get().traits));
        for (const Candidate& candidate : chosen) check_candidate(quantized, candidate, launches);
    };
    check("dtype=bf16 format=w4a16 group=32 zeros=yes in=2048 out=192 tokens=70", sent, 20);
    check("dtype=fp16 format=w8a16 bias=yes residual=yes activation=relu in=1808 out=208 tokens=40", sent,
          20);
    check("dtype=bf16 format=w4a16 group=128 gated=yes activation=silu in=2048 out=64 tokens=100", sent, 20);
    check("dtype=bf16 format=fp8 group=128 in=2048 out=64 tokens=40", sent, 20);
    check("dtype=fp16 format=w8a8 quantized_x=yes in=2064 out=80 tokens=150", sent, 20);
    check("dtype=bf16 format=w4a16 group=128 in=1024 out=2064 tokens=200", in_pairs, 3);
    check("dtype=bf16 format=w8a16 residual=yes in=1088 out=2576 tokens=333", in_pairs, 3);
    check("dtype=bf16 format=fp8 quantized_x=yes in=1040 out=2576 tokens=200", in_pairs, 3);
    check("dtype=bf16 format=w4a16 gated=yes activation=silu in=1024 out=2064 tokens=150", in_pairs, 3);
}

TEST_CASE("quantized_linear is right where the last tiles are split") {
    const TunableRange split{"tail_split", 1, 1};
    check_with("dtype=bf16 format=w4a16 group=128 in=2048 out=2576 tokens=16", split, 4, 3);
    check_with("dtype=bf16 format=w8a16 residual=yes in=1040 out=2576 tokens=200", split, 4, 3);
    check_with("dtype=fp16 format=w8a8 bias=yes in=1040 out=2576 tokens=200", split, 4, 3);
    check_with("dtype=bf16 format=fp8 group=128 gated=yes activation=silu in=1152 out=2064 tokens=150", split,
               4, 3);
}

TEST_CASE("tiles of two widths are right, with what is added to results, in calls back to back") {
    for (const char* tokens : {" tokens=260", " tokens=333", " tokens=600"}) {
        check_variant("two_widths",
                      std::string("dtype=bf16 format=w4a16 group=128 in=640 out=17008") + tokens, 4, 3);
        check_variant(
            "two_widths",
            std::string("dtype=fp16 format=w4a16 group=32 zeros=yes bias=yes activation=gelu_erf in=352 "
                        "out=17008") +
                tokens,
            3, 3);
        check_variant("two_widths",
                      std::string("dtype=bf16 format=w8a16 residual=yes in=640 out=17008") + tokens, 4, 3);
    }
}

TEST_CASE("quantized_linear with many tiles a block is right") {
    check_with("dtype=bf16 format=w4a16 group=128 in=512 out=16912 tokens=3", {"tiles", 2, 32}, 4, 3);
    check_with("dtype=fp16 format=w8a16 gated=yes activation=silu in=256 out=17000 tokens=20",
               {"tiles", 2, 32}, 3, 3);
    check_problem("dtype=bf16 format=w4a16 group=32 zeros=yes in=192 out=2064 tokens=1100", 2);
    check_problem("dtype=bf16 format=w8a8 residual=yes in=192 out=2064 tokens=1100", 2);
    check_problem("dtype=bf16 format=fp8 group=128 in=256 out=2064 tokens=1100", 2);
}

TEST_CASE("weights that become numbers in front are right in groups of every size, with zero points") {
    for (const char* group : {"group=0", "group=32", "group=64", "group=128"}) {
        for (const char* zeros : {" zeros=no", " zeros=yes"}) {
            const std::string text = std::string(" format=w4a16 in=640 out=208 tokens=300 ") + group + zeros;
            check_variant("dequantize", "dtype=bf16" + text, 1);
            check_variant("dequantize", "dtype=fp16" + text, 1);
        }
    }
    for (const char* dtype : {"dtype=bf16", "dtype=fp16"})
        check_variant("dequantize", std::string(dtype) + " format=w8a16 in=640 out=208 tokens=300", 2);
}

TEST_CASE("the numbers in front are those of the codes to the bit") {
    for (const char* text : {"dtype=bf16 format=w4a16 group=32 zeros=yes in=352 out=200 tokens=257",
                             "dtype=fp16 format=w4a16 group=128 in=640 out=72 tokens=257",
                             "dtype=fp16 format=w4a16 zeros=yes in=72 out=136 tokens=257",
                             "dtype=bf16 format=w8a16 gated=yes activation=silu in=328 out=200 tokens=257",
                             "dtype=fp16 format=w8a16 in=72 out=56 tokens=257"}) {
        const QuantizedCase quantized(text);
        const DeviceTraits& traits = Bench::get().traits;
        const Variant& variant = *find_variant(*quantized.problem().family, "dequantize");
        if (!runs_on(variant, traits)) return;
        const Config config = enumerate(quantized.problem(), variant, traits).at(0);
        INFO(to_string(quantized.problem()));
        const auto results = quantized.run({&variant, config});
        const std::vector<std::byte>& workspace = results[quantized_linear::workspace].bytes;
        const Plan plan = variant.plan(quantized.problem(), config, traits);
        check_numbers(quantized.problem(), workspace, plan.tensor_maps[1], quantized.weight_values());
        if (!quantized.up_values().empty())
            check_numbers(quantized.problem(), workspace, plan.tensor_maps[2], quantized.up_values());
    }
}

TEST_CASE("weights that become numbers in front are right with every way out, behind a norm and gated") {
    for (const char* activation : {"none", "gelu_tanh", "gelu_erf", "silu", "relu"}) {
        const std::string text = std::string(" in=192 out=208 tokens=300 activation=") + activation;
        check_variant("dequantize", "dtype=bf16 format=w4a16 group=64 bias=yes residual=yes" + text, 2);
        check_variant("dequantize", "dtype=fp16 format=w8a16 norm=yes bias=yes" + text, 1);
    }
    for (const std::int64_t tokens : {257, 700}) {
        const std::string text = " gated=yes activation=silu out=136" + tokens_text(tokens);
        check_variant("dequantize", "dtype=bf16 format=w4a16 group=32 zeros=yes norm=yes in=352" + text, 2);
        check_variant("dequantize", "dtype=fp16 format=w8a16 in=264" + text, 2);
    }
}

TEST_CASE("weights that become numbers in front are right at sizes that no block divides, and with strides") {
    const QuantizedLayout gaps{.behind_x = 16, .behind_residual = 48, .behind_out = 64};
    for (const char* sizes : {" in=8 out=8", " in=72 out=56", " in=1048 out=200", " in=200 out=1032"}) {
        const std::string text = sizes + tokens_text(333);
        check_variant("dequantize", "dtype=bf16 format=w4a16 zeros=yes" + text, 1);
        check_variant("dequantize", "dtype=fp16 format=w8a16 residual=yes" + text, 1, 1, gaps);
    }
}

TEST_CASE("weights that become numbers in front are right in calls back to back") {
    // The next call's numbers stand where this call's are read.
    check_variant("dequantize", "dtype=bf16 format=w4a16 group=128 in=1024 out=1040 tokens=600", 6, 20);
    check_variant("dequantize", "dtype=bf16 format=w8a16 norm=yes in=1024 out=528 tokens=600", 4, 20);
    check_with("dtype=bf16 format=w4a16 group=128 in=1024 out=1040 tokens=600", {"tail_split", 1, 1}, 3, 20);
}

TEST_CASE("packed weights are right in products without a pause, in calls of any number of tokens") {
    constexpr TunableRange without_pause{.name = "stages_together", .least = 0, .most = 0};
    for (const char* format :
         {"dtype=bf16 format=w4a16 group=128", "dtype=bf16 format=w4a16 group=32 zeros=yes",
          "dtype=fp16 format=w4a16 zeros=yes", "dtype=bf16 format=w8a16", "dtype=fp16 format=w8a16"}) {
        for (const std::int64_t tokens : {33, 100, 300}) {
            // The ring comes round, and its last round is not a whole one.
            check_with(format + std::string(" in=1664 out=208") + tokens_text(tokens), without_pause, 2, 2);
        }
        check_with(format + std::string(" gated=yes activation=silu in=128 out=144") + tokens_text(200),
                   without_pause, 2);
    }
}

TEST_CASE("packed weights are right where stages are taken two at a time, by warpgroups in turns or not") {
    constexpr TunableRange in_pairs{.name = "stages_together", .least = 6, .most = 7};
    for (const char* format :
         {"dtype=bf16 format=w4a16 group=128", "dtype=bf16 format=w4a16 group=32 zeros=yes",
          "dtype=fp16 format=w4a16 group=64", "dtype=bf16 format=w8a16", "dtype=fp16 format=w8a16"}) {
        for (const std::int64_t tokens : {33, 100, 300}) {
            check_with(format + std::string(" in=1664 out=208") + tokens_text(tokens), in_pairs, 3, 2);
        }
        check_with(format + std::string(" gated=yes activation=silu in=128 out=144") + tokens_text(200),
                   in_pairs, 2);
    }
}

TEST_CASE("packed weights are right where stages are taken two at a time and the last tiles are split") {
    const Variant* variant = &quantized_linear::wgmma_w16;
    const DeviceTraits& traits = Bench::get().traits;
    if (!runs_on(*variant, traits)) return;
    for (const char* text :
         {"dtype=bf16 format=w4a16 group=128 in=1024 out=16912 tokens=144",
          "dtype=bf16 format=w4a16 group=32 zeros=yes bias=yes in=640 out=16912 tokens=144",
          "dtype=fp16 format=w8a16 residual=yes in=1152 out=16912 tokens=144"}) {
        const QuantizedCase quantized(text);
        const auto splits_pairs = [](const Candidate& candidate) {
            const auto c = values_of<quantized_linear::WgmmaW16Config>(candidate.config);
            return c.tail_split != 0 && quantized_linear::form_of(c.stages_together).pairs;
        };
        for (const Candidate& candidate : sample_variant(quantized.problem(), *variant, 4, splits_pairs))
            check_candidate(quantized, candidate, 3);
    }
}

TEST_CASE("packed weights are right where results leave in small panels that take turns") {
    constexpr TunableRange panels{.name = "staged", .least = 3, .most = 3};
    for (const char* more : {"", " bias=yes residual=yes activation=gelu_erf"}) {
        check_with("dtype=bf16 format=w4a16 group=128 in=1024 out=1040 tokens=512" + std::string(more),
                   panels, 4, 2);
        check_with("dtype=fp16 format=w8a16 in=1024 out=1040 tokens=300" + std::string(more), panels, 3);
    }
}

TEST_CASE("two runs of quantized_linear give the same bits") {
    for (const char* text : {"dtype=bf16 format=w4a16 group=128 norm=yes in=4096 out=192 tokens=48",
                             "dtype=bf16 format=fp8 in=4096 out=192 tokens=48"}) {
        const QuantizedCase quantized(text);
        for (const Candidate& candidate : sample(quantized.problem(), 2)) {
            INFO(text << " | " << to_string(candidate));
            CHECK(quantized.run(candidate)[quantized_linear::out].bytes ==
                  quantized.run(candidate, 5)[quantized_linear::out].bytes);
        }
    }
}
