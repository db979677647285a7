// The ring of variant ring (kernel.cu): which tiles and columns a block takes, and where things stand in its
// shared memory.
#pragma once

#include "device/cluster_barrier.cuh"
#include "linear/shared_norm.cuh"
#include "quantized_linear/ring/geometry.cuh"
#include "quantized_linear/tensors.cuh"

namespace hone::quantized_linear::ring {

static_assert(is_packed, "codes in the order of the tensor cores' left operand");

/// Scales of groups travel with the codes; those of rows are for the finishers.
inline constexpr bool has_groups = format == Format::w4a16 && group != 0;
inline constexpr RingGeometry geometry{.bits = format == Format::w4a16 ? 4 : 8,
                                       .group = has_groups ? group : 0,
                                       .zeros = has_groups && has_zeros,
                                       .products = products,
                                       .in = in,
                                       .tokens = Tuned::tokens,
                                       .rows = Tuned::rows,
                                       .warp_rows = Tuned::warp_rows,
                                       .k_warps = Tuned::k_warps,
                                       .stage_columns = Tuned::stage_columns,
                                       .stages = Tuned::stages,
                                       .cluster_k = Tuned::cluster_k,
                                       .x_streams = Tuned::x_streams != 0,
                                       .factors = linear::takes_squares()};
inline constexpr bool x_streams = geometry.x_streams;
inline constexpr int stages = geometry.stages;
inline constexpr int cluster_k = geometry.cluster_k;
inline constexpr bool has_cluster = cluster_k > 1;
inline constexpr int compute_warps = geometry.compute_warps();
inline constexpr int finishers = RingGeometry::finishers;
inline constexpr int threads = geometry.threads();
inline constexpr int token_blocks = geometry.token_blocks();
inline constexpr int tiles = (out + geometry.rows - 1) / geometry.rows;
static_assert(geometry.stage_columns % geometry.unit_columns() == 0, "a stage holds whole units");
static_assert(block_rows % geometry.warp_rows == 0 && geometry.warp_rows % 16 == 0,
              "a warp's rows are whole instructions of one block");
static_assert(geometry.fragments() >= cluster_k, "every block of a cluster owns results: it waits for some");

/// What a block has to do: the cluster's tiles one after another, of each the same units.
struct Schedule {
    __device__ Schedule()
        : rank(has_cluster ? static_cast<int>(cluster_rank()) : 0),
          first_tile(static_cast<int>(blockIdx.x) / cluster_k),
          tile_step(static_cast<int>(gridDim.x) / cluster_k),
          tile_count((tiles - first_tile + tile_step - 1) / tile_step),
          first_unit(geometry.first_unit(rank)),
          unit_count(geometry.first_unit(rank + 1) - first_unit),
          steps((unit_count + geometry.stage_units() - 1) / geometry.stage_units()) {}

    __device__ int tile(int number) const { return first_tile + number * tile_step; }
    /// Units of a step's stage.
    __device__ int units(int step) const {
        return min(geometry.stage_units(), unit_count - step * geometry.stage_units());
    }

    int rank;
    int first_tile;
    int tile_step;
    int tile_count;
    int first_unit;
    int unit_count;
    int steps;
};

/// Shared addresses.
struct Memory {
    uint32 base;

    __device__ uint32 stage(int index) const {
        return base + geometry.ring_at() + index * geometry.stage_bytes();
    }
    /// x of a step, whose stage is `stage_at`: boxes of 64 columns.
    __device__ uint32 x(int step, uint32 stage_at) const {
        if constexpr (x_streams) return stage_at;
        return base + step * geometry.stage_units() * geometry.unit_blocks() * geometry.box_bytes();
    }
    __device__ uint32 inbox(int index) const {
        return base + geometry.inbox_at() + index * geometry.inbox_bytes();
    }
    /// What a token's sums are multiplied with (linear/shared_norm.cuh).
    __device__ uint32 factor(int token) const { return base + geometry.factors_at() + 4 * token; }
    __device__ uint32 barrier(int index) const { return base + geometry.barriers_at() + 8 * index; }
    __device__ uint32 full(int stage) const { return barrier(stage); }
    __device__ uint32 empty(int stage) const { return barrier(stages + stage); }
    __device__ uint32 inbox_full(int index) const { return barrier(2 * stages + index); }
    __device__ uint32 inbox_read(int index) const { return barrier(2 * stages + 2 + index); }
    __device__ uint32 x_full(int step) const { return barrier(2 * stages + 4 + step); }
};

}  // namespace hone::quantized_linear::ring
