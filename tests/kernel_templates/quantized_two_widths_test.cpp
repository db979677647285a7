#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "kernel_templates/catalog.h"
#include "kernel_templates/kit/tunables.h"
#include "kernel_templates/quantized_linear/two_widths/plan.h"
#include "kernel_templates/quantized_linear/two_widths/rounds.cuh"
#include "kernel_templates/quantized_linear/variants.h"
#include "kernel_templates/space.h"
#include "tests/kernel_templates/drawn_cases.h"

using namespace hone;
using linear::gemm::Tiling;

using quantized_linear::TwoWidthsConfig;
using quantized_linear::widths::Rounds;

namespace {

Problem problem_of(const std::string& text) { return *parse_problem("quantized_linear " + text); }

const DeviceTraits h100 = *representative_device({9, 0, true});

Tiling tiling_of(int out, int rows, int columns) {
    return {.out = out,
            .k_tiles = 8,
            .result_rows = rows,
            .result_columns = columns,
            .raster = 8,
            .swapped = true};
}

/// How often each result is written, [rows of 64][tokens]; asks that tiles begin where results are.
std::vector<int> written(const Tiling& wide, int last_n, int last_rounds, int tokens, int blocks) {
    const int row_blocks = (wide.out + 63) / 64;
    std::vector<int> counts(static_cast<std::size_t>(row_blocks * tokens));
    for (int block = 0; block < blocks; ++block) {
        const Rounds rounds(wide, last_n, last_rounds, tokens, blocks, block);
        for (int i = 0; i < rounds.count(); ++i) {
            const linear::gemm::Work work = rounds.work(i);
            CHECK(work.first_k == 0);
            CHECK(work.k_count == wide.k_tiles);
            REQUIRE(work.row >= 0);
            REQUIRE(work.column >= 0);
            REQUIRE(work.row < wide.out);
            REQUIRE(work.column < tokens);
            const int columns = i < rounds.wide_count() ? wide.result_columns : last_n;
            const int row_end = std::min((work.row + wide.result_rows) / 64, row_blocks);
            const int token_end = std::min(work.column + columns, tokens);
            for (int row = work.row / 64; row < row_end; ++row)
                for (int token = work.column; token < token_end; ++token)
                    ++counts[static_cast<std::size_t>(row * tokens + token)];
        }
    }
    return counts;
}

}  // namespace

TEST_CASE("two_widths: every result is in one tile, whatever the tokens and the blocks") {
    for (const int out : {1008, 4096, 13824}) {
        for (const int rows : {128, 192, 256}) {
            for (const auto& [wide, narrow] :
                 std::vector<std::pair<int, int>>{{176, 128}, {256, 176}, {128, 64}}) {
                for (const int last_rounds : {1, 2, 4}) {
                    for (const int tokens : {1, 129, 333, 512}) {
                        for (const int blocks : {1, 7, 132}) {
                            const Tiling tiling = tiling_of(out, rows, wide);
                            INFO(out, " in ", rows, " x ", wide, " and ", narrow, ", ", last_rounds, ", ",
                                 tokens, " tokens, ", blocks, " blocks");
                            const std::vector<int> counts =
                                written(tiling, narrow, last_rounds, tokens, blocks);
                            CHECK(std::ranges::all_of(counts, [](int count) { return count == 1; }));
                        }
                    }
                }
            }
        }
    }
}

TEST_CASE("two_widths: wide tiles fill whole rounds, and the rest fits the rounds of narrow ones") {
    // 108 rows of 128 x 512: 1.64 rounds of 128 x 256, which are one and one of narrow tiles.
    const Tiling tiling = tiling_of(13824, 128, 256);
    const auto shares = quantized_linear::widths::shares_of(tiling, 176, 1, 512, 132);
    CHECK(shares.wide_rows() == 66);
    CHECK(shares.wide_rounds() == 1);
    CHECK(shares.narrow_rounds() == 1);
    for (const int block : {0, 77, 125})
        CHECK(Rounds(tiling, 176, 1, 512, 132, block).count() == 2 - (block < 6));
    // In two rounds of 128 and one of 176.
    const auto more = quantized_linear::widths::shares_of(tiling_of(13824, 128, 176), 128, 2, 512, 132);
    CHECK(more.wide_rows() == 44);
    CHECK(more.wide_rounds() == 1);
    CHECK(more.narrow_rounds() == 2);
    // Wide tiles alone fill the rounds: no narrow ones are left. Few tokens have narrow tiles alone.
    CHECK(quantized_linear::widths::shares_of(tiling_of(66 * 128, 128, 256), 176, 1, 512, 132)
              .narrow_rounds() == 0);
    CHECK(quantized_linear::widths::shares_of(tiling, 176, 1, 100, 132).wide_rounds() == 0);
}

TEST_CASE(
    "two_widths: there are configs where tiles of one width leave blocks idle, none with a gate or codes") {
    const Variant& variant = quantized_linear::two_widths;
    const std::string shape = "dtype=bf16 format=w4a16 group=128 in=5120 out=13824";
    CHECK(!enumerate(problem_of(shape + " tokens=512"), variant, h100).empty());
    CHECK(!enumerate(problem_of("dtype=fp16 format=w8a16 bias=yes in=13824 out=5120 tokens=1000"), variant,
                     h100)
               .empty());
    CHECK(enumerate(problem_of(shape + " tokens=128"), variant, h100).empty());
    CHECK(enumerate(problem_of(shape + " gated=yes activation=silu tokens=512"), variant, h100).empty());
    CHECK(
        enumerate(problem_of("dtype=bf16 format=w8a8 in=5120 out=13824 tokens=512"), variant, h100).empty());
}

TEST_CASE("two_widths: launches fit the device, with boxes of either width") {
    for (const std::string shape :
         {"dtype=bf16 format=w4a16 group=128 in=5120 out=13824 tokens=512",
          "dtype=fp16 format=w4a16 group=32 zeros=yes norm=yes in=4096 out=28672 tokens=777",
          "dtype=bf16 format=w8a16 residual=yes in=13824 out=5120 tokens=1000"}) {
        const Problem problem = problem_of(shape);
        test::for_some_candidates(
            problem, quantized_linear::two_widths, h100, 100, [&](const Candidate& candidate) {
                const Plan plan = candidate.variant->plan(problem, candidate.config, h100);
                const Launch& launch = plan.launches[static_cast<std::size_t>(plan.launch_count - 1)];
                const auto c = values_of<TwoWidthsConfig>(candidate.config);
                CHECK(launch.grid.x == static_cast<std::uint32_t>(h100.sm_count));
                CHECK(launch.shared_bytes <= h100.max_shared_bytes_per_block);
                REQUIRE(plan.tensor_map_count == 6);
                for (const std::size_t map : {0, 1}) CHECK(plan.tensor_maps[map].box[1] == c.tile_n);
                for (const std::size_t map : {3, 4}) CHECK(plan.tensor_maps[map].box[1] == c.last_n);
                const std::int64_t tokens = quantized_linear::QuantizedProblem(problem).tokens;
                CHECK((plan.tensor_maps[2].same_as == 0) == (tokens % c.tile_n == 0));
                CHECK((plan.tensor_maps[5].same_as == 3) == (tokens % c.last_n == 0));
            });
    }
}
