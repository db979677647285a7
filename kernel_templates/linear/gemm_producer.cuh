// The producer of the tensor-core product (gemm.cuh): one thread that keeps the ring of stages full.
#pragma once

#include "device/mbarrier.cuh"
#include "device/tma.cuh"
#include "linear/gemm_tile.cuh"

namespace hone::linear::gemm {

struct Maps {
    const TensorMap& x;
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

class Producer {
  public:
    __device__ Producer(uint32 shared, const Maps& maps) : shared_(shared), maps_(maps) {}

    __device__ void run(const Schedule& schedule) {
        Ring ring;
        int early = programmatic ? start_early(schedule) : 0;
        const int count = schedule.count();
        for (int i = 0; i < count; ++i) {
            const Work tile = schedule.work(i);
            for (int k = 0; k < tile.k_count; ++k, ring.advance()) {
                if (early > 0) {
                    --early;
                    continue;
                }
                barrier_wait(empty_barrier(shared_, ring.stage), ring.parity ^ 1);
                barrier_arrive_expecting(full_barrier(shared_, ring.stage), geometry.stage_bytes());
                load_weight(tile, tile.first_k + k, ring.stage);
                load_x(tile, tile.first_k + k, ring.stage);
            }
        }
        if constexpr (releases_late) release_successor();
    }

  private:
    /// Weights do not depend on the kernel before: they fill the ring while that one ends.
    __device__ int start_early(const Schedule& schedule) {
        const int count = for_first_stages(schedule, [&](const Work& tile, int k, int stage) {
            barrier_arrive_expecting(full_barrier(shared_, stage), geometry.stage_bytes());
            load_weight(tile, k, stage);
        });
        wait_for_predecessor();
        fence_async_proxy_global();
        for_first_stages(schedule, [&](const Work& tile, int k, int stage) { load_x(tile, k, stage); });
        return count;
    }

    /// Calls visit(tile, k, stage) for the steps with which the block's ring fills; returns their number.
    template <class Visit>
    __device__ static int for_first_stages(const Schedule& schedule, Visit visit) {
        const int count = schedule.count();
        int stage = 0;
        for (int i = 0; i < count && stage < stages; ++i) {
            const Work tile = schedule.work(i);
            const int end = min(tile.k_count, stages - stage);
            for (int k = 0; k < end; ++k) visit(tile, tile.first_k + k, stage++);
        }
        return stage;
    }

    __device__ void load_weight(const Work& tile, int k, int stage) {
        constexpr L2Hint hint = Tuned::l2_hint != 0 ? L2Hint::evict_first : L2Hint::normal;
        const int first = swapped ? tile.row : tile.column;
        load<swapped, hint>(maps_.weight, 0, k, first, stage);
        if constexpr (gated) load<swapped, hint>(maps_.up, geometry.weight_box(), k, first, stage);
    }
    __device__ void load_x(const Work& tile, int k, int stage) {
        constexpr L2Hint hint = Tuned::l2_hint != 0 ? L2Hint::evict_last : L2Hint::normal;
        load<!swapped, hint>(maps_.x, 0, k, swapped ? tile.column : tile.row, stage);
    }

    /// The box whose first row is `row` of the operand's tile and `from` of the matrix.
    template <bool left, L2Hint hint>
    __device__ void load(const TensorMap& map, int row, int k, int from, int stage) {
        const uint32 base = left ? geometry.left_at() + stage * geometry.left_bytes()
                                 : geometry.right_at() + stage * geometry.right_bytes();
        load_box<hint>(shared_ + base + row * stage_columns * 2, map, k * stage_columns, from,
                       full_barrier(shared_, stage));
    }

    uint32 shared_;
    const Maps& maps_;
};

}  // namespace hone::linear::gemm
