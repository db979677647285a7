// The producer of the tensor-core product (product.cuh): one thread that keeps the ring of stages full.
#pragma once

#include "device/mbarrier.cuh"
#include "device/tma.cuh"
#include "linear/wgmma/tile.cuh"

namespace hone::linear::gemm {

struct Maps {
    const TensorMap& x;
    const TensorMap& x_rest;  ///< boxes of the last tile's rows, where that is not a whole one
    const TensorMap& weight;  ///< the gate where gated
    const TensorMap& up;
    const TensorMap& result;
};

using Ring = RingPosition<stages>;

__device__ inline uint32 full_barrier(uint32 shared, int stage) {
    return shared + geometry.barriers_at() + stage * 8;
}
__device__ inline uint32 empty_barrier(uint32 shared, int stage) {
    return full_barrier(shared, stages + stage);
}

/// Hints to level 2: weights that are read once leave it first, x last.
inline constexpr L2Hint weight_hint = Tuned::l2_hint != 0 ? L2Hint::evict_first : L2Hint::normal;
inline constexpr L2Hint x_hint = Tuned::l2_hint != 0 ? L2Hint::evict_last : L2Hint::normal;

/// Loads the box of step k whose first row is `row` of the operand's tile and `from` of the matrix.
template <bool left, L2Hint hint>
__device__ inline void load_rows(uint32 shared, const TensorMap& map, int row, int k, int from, int stage) {
    constexpr int pitch = left ? operands.left_pitch : operands.right_pitch;
    const uint32 base = left ? geometry.left_at() + stage * geometry.left_bytes()
                             : geometry.right_at() + stage * geometry.right_bytes();
    load_box<hint>(shared + base + row * pitch, map, k * operands.columns, from, full_barrier(shared, stage));
}

/// Weights that are matrices in memory as they are in the ring.
class MatrixWeights {
  public:
    __device__ explicit MatrixWeights(const Maps& maps) : maps_(maps) {}

    /// The tile's weights of step k.
    __device__ void load(uint32 shared, const Work& tile, int k, int stage) const {
        const int first = swapped ? tile.row : tile.column;
        load_rows<swapped, weight_hint>(shared, maps_.weight, 0, k, first, stage);
        if constexpr (gated)
            load_rows<swapped, weight_hint>(shared, maps_.up, geometry.weight_box(), k, first, stage);
    }

  private:
    const Maps& maps_;
};

template <class Weights>
class Producer {
  public:
    __device__ Producer(uint32 shared, const Maps& maps, const Weights& weights, int tokens)
        : shared_(shared), maps_(maps), weights_(weights), tokens_(tokens) {}

    __device__ void run(const Schedule& schedule) {
        Ring ring;
        int early = programmatic ? start_early(schedule) : 0;
        const int count = schedule.count();
        for (int i = 0; i < count; ++i) {
            const Work tile = schedule.work(i);
            const int bytes = stage_bytes(tile);
            for (int k = 0; k < tile.k_count; ++k, ring.advance()) {
                if (early > 0) {
                    --early;
                    continue;
                }
                barrier_wait(empty_barrier(shared_, ring.stage), ring.parity ^ 1);
                barrier_arrive_expecting(full_barrier(shared_, ring.stage), bytes);
                weights_.load(shared_, tile, tile.first_k + k, ring.stage);
                load_x(tile, tile.first_k + k, ring.stage);
            }
        }
        if constexpr (releases_late) release_successor();
    }

  private:
    /// Weights do not depend on the kernel before: they fill the ring, or its first stages, while that one
    /// ends.
    __device__ int start_early(const Schedule& schedule) {
        const int count = for_first_stages(schedule, [&](const Work& tile, int k, int stage) {
            barrier_arrive_expecting(full_barrier(shared_, stage), stage_bytes(tile));
            weights_.load(shared_, tile, k, stage);
        });
        wait_for_predecessor();
        fence_async_proxy_global();
        for_first_stages(schedule, [&](const Work& tile, int k, int stage) { load_x(tile, k, stage); });
        return count;
    }

    /// Calls visit(tile, k, stage) for the steps that fill the first `early_stages`; returns their number.
    template <class Visit>
    __device__ static int for_first_stages(const Schedule& schedule, Visit visit) {
        const int count = schedule.count();
        int stage = 0;
        for (int i = 0; i < count && stage < early_stages; ++i) {
            const Work tile = schedule.work(i);
            const int end = min(tile.k_count, early_stages - stage);
            for (int k = 0; k < end; ++k) visit(tile, tile.first_k + k, stage++);
        }
        return stage;
    }

    /// Rows of x from the tile's first on. The last tile may have fewer than others, and a map of its own:
    /// the copy engine is slow where rows do not exist (300 tokens of 4096 -> 4096 in tiles of 256 took 62 us
    /// on an H100, 512 took 29). What stands in their place in shared memory is anything; no result that
    /// exists is made of it.
    __device__ int rows_of(const Work& tile) const { return tokens_ - first_token(tile); }
    __device__ static int first_token(const Work& tile) { return swapped ? tile.column : tile.row; }

    __device__ int stage_bytes(const Work& tile) const {
        constexpr int pitch = swapped ? operands.right_pitch : operands.left_pitch;
        return geometry.stage_bytes() - max(geometry.x_box() - rows_of(tile), 0) * pitch;
    }
    __device__ void load_x(const Work& tile, int k, int stage) {
        const TensorMap& map = rows_of(tile) < geometry.x_box() ? maps_.x_rest : maps_.x;
        load_rows<!swapped, x_hint>(shared_, map, 0, k, first_token(tile), stage);
    }

    uint32 shared_;
    const Maps& maps_;
    const Weights& weights_;
    int tokens_;
};

}  // namespace hone::linear::gemm
