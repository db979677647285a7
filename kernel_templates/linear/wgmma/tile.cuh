// The tensor-core product (product.cuh): its tunables, and what follows from them. The .cu that includes this
// says first what a stage holds (`gemm::operands`).
#pragma once

#include "linear/epilogue.cuh"
#include "linear/shared_norm.cuh"
#include "linear/wgmma/geometry.cuh"
#include "linear/wgmma/schedule.cuh"

namespace hone::linear::gemm {

inline constexpr Geometry geometry{.tile_m = static_cast<int>(Tuned::tile_m),
                                   .tile_n = static_cast<int>(Tuned::tile_n),
                                   .consumers = static_cast<int>(Tuned::consumers),
                                   .blocks_per_sm = static_cast<int>(Tuned::blocks_per_sm),
                                   .cluster_k = static_cast<int>(Tuned::cluster_k),
                                   .gated = gated,
                                   .swapped = Tuned::swapped != 0,
                                   .ping_pong = Tuned::ping_pong != 0,
                                   .tail_pairs = Tuned::tail_split == 2,
                                   .staged = static_cast<int>(Tuned::staged),
                                   .operands = operands};
inline constexpr int k_tiles = (in + operands.columns - 1) / operands.columns;
inline constexpr Tiling tiling{
    .out = out,
    .k_tiles = k_tiles,
    .k_unit = k_tiles % (operands.k_unit * geometry.cluster_k) == 0 ? operands.k_unit : 1,
    .result_rows = geometry.result_rows(),
    .result_columns = geometry.result_columns(),
    .raster = static_cast<int>(Tuned::raster),
    .cluster_k = geometry.cluster_k,
    .swapped = geometry.swapped,
    .tail_split = Tuned::tail_split != 0,
    .in_pairs = Tuned::tail_split == 2};

inline constexpr int tile_m = geometry.tile_m;
inline constexpr int tile_n = geometry.tile_n;
inline constexpr int stages = geometry.stages();
inline constexpr int consumers = geometry.consumers;
inline constexpr int cluster_k = geometry.cluster_k;
inline constexpr bool tail_split = tiling.tail_split && !tiling.in_pairs;
inline constexpr bool ping_pong = geometry.ping_pong;
inline constexpr bool swapped = geometry.swapped;
inline constexpr bool programmatic = Tuned::programmatic != 0;
/// The successor may start when this block's last loads are under way; else at once.
inline constexpr bool releases_late = Tuned::programmatic >= 2;
/// Stages of the ring whose weights are asked for before the kernel ahead has ended: all, or what 32 KiB
/// hold, two at least. x, which waits for that end, stands behind them on its way into the multiprocessor.
inline constexpr int weight_bytes =
    geometry.weight_box() * (gated ? 2 : 1) * (geometry.swapped ? operands.left_pitch : operands.right_pitch);
inline constexpr int most_early = Tuned::programmatic != 3   ? stages
                                  : weight_bytes < 16 * 1024 ? 32 * 1024 / weight_bytes
                                                             : 2;
inline constexpr int early_stages = most_early < stages ? most_early : stages;
inline constexpr int threads = geometry.threads();
inline constexpr int row_blocks = geometry.row_blocks();
inline constexpr int result_blocks = geometry.result_blocks();
inline constexpr int result_columns = geometry.result_columns();
inline constexpr bool halves = geometry.halves();
inline constexpr bool gated_rows = geometry.gated_rows();
inline constexpr bool gated_columns = geometry.gated_columns();
inline constexpr bool whole_columns = out % result_columns == 0;

static_assert(halves || tile_m % (block_rows * geometry.sharers()) == 0,
              "each consumer takes blocks of 64 rows");
static_assert(!halves || (!gated && geometry.takes_turns() && tile_n % 16 == 0),
              "halves of a block are of tokens, whole fragments, and leave in turns");
static_assert(tile_n % 8 == 0 && tile_n <= 256, "wgmma's n");
static_assert(geometry.weight_box() % 8 == 0 && geometry.weight_box() <= 256, "whole groups of 8 rows");
static_assert(!gated_rows || row_blocks % 2 == 0, "gate and up rows meet in one warpgroup");
static_assert(!gated_columns || tile_n % 16 == 0, "gate and up columns meet in one thread");
static_assert(geometry.staged == 0 || geometry.has_inbox() || swapped || result_columns % 16 == 0,
              "a staged row has 16 results at least");
static_assert(!geometry.joins_early() || geometry.can_join_early(), "two blocks, two warpgroups");
static_assert(!geometry.joins_early() || k_tiles >= 2 * (geometry.last_steps() + geometry.sent_stages()),
              "other steps than the last");
static_assert(cluster_k == 1 || !(tiling.tail_split || ping_pong), "one way to split a sum");
static_assert(!geometry.tail_pairs || !(ping_pong || halves || geometry.blocks_per_sm > 1),
              "two blocks share whole blocks of rows of a tile");
static_assert(!geometry.tail_pairs ||
                  geometry.joined_bytes(geometry.joined_share()) <= stages * geometry.stage_bytes(),
              "the parts of sums fit the ring");
static_assert(cluster_k == 1 || geometry.joins_early() || geometry.has_inbox() ||
                  geometry.exchange_bytes() <= stages * geometry.stage_bytes(),
              "the parts of sums fit the ring");
static_assert(k_tiles >= cluster_k, "every part of a sum has terms");
static_assert(!gives_squares() || (!swapped && cluster_k > 1 && !geometry.joins_early() &&
                                   geometry.fragments() % (2 * cluster_k) == 0),
              "a block adds up whole slots of the columns that a thread and its neighbours have");
static_assert(!takes_squares() || !(swapped || geometry.joins_early() || consumers > 2),
              "rows of x are the tile's, and registers suffice for who works out their factors");
static_assert(!ping_pong || consumers == 2, "ping-pong is between two warpgroups");
static_assert(stages >= 2, "a ring");
static_assert(out % 8 == 0 || geometry.staged == 0 || geometry.has_inbox(),
              "rows that the copy engine writes start at multiples of 16 bytes");

/// A thread's sums, in the accumulators' map (device/wgmma.cuh); with `halves` those of half a block stand in
/// the first half of the last row.
using Sums = float[row_blocks + (halves ? 1 : 0)][tile_n / 2];
inline constexpr int half_columns = halves ? tile_n / 2 : tile_n;
using HalfSums = float[half_columns / 2];
__device__ inline HalfSums& half_of(Sums& sums) {
    return reinterpret_cast<HalfSums&>(sums[halves ? row_blocks : 0]);
}

}  // namespace hone::linear::gemm
