// Variant ring (kernel.cu): its constants, which tiles a block takes, and where things stand in its shared
// memory.
#pragma once

#include "device/cluster_barrier.cuh"
#include "device/mma.cuh"
#include "linear/ring/geometry.cuh"
#include "linear/shared_norm.cuh"
#include "linear/tensors.cuh"

namespace hone::linear::ring {

/// Of a config without regard to a norm.
inline constexpr RingGeometry plain_geometry{.products = products,
                                             .in = in,
                                             .out = out,
                                             .tokens = Tuned::tokens,
                                             .rows = Tuned::rows,
                                             .consumers = Tuned::consumers,
                                             .stage_columns = Tuned::stage_columns,
                                             .stages = Tuned::stages,
                                             .cluster_k = Tuned::cluster_k,
                                             .norm = false};
/// x times the norm's weight may leave fp16's range, not bf16's.
inline constexpr bool folds_norm =
    has_norm && !shares_norm() && is_bf16<Element> && plain_geometry.can_fold();
inline constexpr RingGeometry geometry = [] {
    RingGeometry g = plain_geometry;
    g.norm = folds_norm;
    g.factors = takes_squares();
    return g;
}();
inline constexpr int stages = geometry.stages;
inline constexpr int consumers = geometry.consumers;
inline constexpr int tokens = geometry.tokens;
inline constexpr int cluster_k = geometry.cluster_k;
inline constexpr bool has_cluster = cluster_k > 1;
static_assert(stages % consumers == 0, "a stage is the same warpgroup's in every round");
static_assert(geometry.rows % 8 == 0, "panels begin at multiples of 1024 bytes");

/// What a block has to do: the cluster's tiles, with the grid's step, of each the same steps.
struct Schedule {
    __device__ Schedule()
        : rank(has_cluster ? static_cast<int>(cluster_rank()) : 0),
          first_tile(static_cast<int>(blockIdx.x) / cluster_k),
          tile_step(static_cast<int>(gridDim.x) / cluster_k),
          count((geometry.tiles() - first_tile + tile_step - 1) / tile_step),
          first_step(geometry.first_step(rank)),
          steps(geometry.first_step(rank + 1) - first_step) {}
    __device__ int tile(int number) const { return first_tile + number * tile_step; }

    int rank;
    int first_tile;
    int tile_step;
    int count;
    int first_step;
    int steps;
};

/// Places in shared memory; `start` is a multiple of 1024.
struct Memory {
    unsigned char* start;
    uint32 base;

    __device__ uint32 stage(int index) const { return base + index * geometry.stage_bytes(); }
    /// Sums of a source and a token in an inbox, and the shared address of one.
    __device__ float* sums(int inbox, int source, int token) const {
        return reinterpret_cast<float*>(start + geometry.inboxes_at()) + sums_place(inbox, source, token);
    }
    __device__ uint32 sums_address(int inbox, int source, int token, int row) const {
        return base + geometry.inboxes_at() + 4 * (sums_place(inbox, source, token) + row);
    }
    /// What a token's sums are multiplied with (linear/shared_norm.cuh).
    __device__ float* factor(int token) const { return squares(0, token); }
    /// Of a finishing warp's steps.
    __device__ float* squares(int warp, int token) const {
        return reinterpret_cast<float*>(start + geometry.squares_at()) + warp * geometry.tokens + token;
    }
    __device__ uint32 barrier(int index) const { return base + geometry.barriers_at() + 8 * index; }
    __device__ uint32 full(int stage) const { return barrier(stage); }
    __device__ uint32 empty(int stage) const { return barrier(stages + stage); }
    __device__ uint32 sums_full(int inbox) const { return barrier(2 * stages + inbox); }
    __device__ uint32 sums_read(int inbox) const { return barrier(2 * stages + 2 + inbox); }

  private:
    __device__ static int sums_place(int inbox, int source, int token) {
        return inbox * geometry.inbox_words() + source * geometry.source_words() + token * geometry.pitch();
    }
};

}  // namespace hone::linear::ring
