// The consumers of the tensor-core product (gemm.cuh): warpgroups that multiply what stands in the ring.
#pragma once

#include "device/wgmma.cuh"
#include "linear/gemm_producer.cuh"
#include "linear/gemm_writer.cuh"

namespace hone::linear::gemm {

class Consumer {
  public:
    __device__ Consumer(uint32 shared, const Maps& maps, const Results& results, int warpgroup)
        : shared_(shared), warpgroup_(warpgroup), writer_(shared, maps.result, results, warpgroup) {}

    __device__ void run(const Schedule& schedule, int rank) {
        Ring ring;
        const int count = schedule.count();
        if (ping_pong && warpgroup_ == 1) named_barrier_arrive<256>(order_barrier(0));
        for (int i = 0; i < count; ++i) {
            const Work tile = schedule.work(i);
            if (ping_pong && i % 2 != warpgroup_) {
                ring.advance(tile.k_count);
                continue;
            }
            Sums sums;
            if constexpr (ping_pong) named_barrier_sync<256>(order_barrier(warpgroup_));
            multiply(sums, ring, tile.k_count, i + 1 < count);
            if constexpr (cluster_k > 1) {
                writer_.store_shared(sums, tile, rank);
            } else {
                writer_.store(sums, tile);
            }
        }
        writer_.finish();
    }

  private:
    /// Barriers 1 and 2 are the writers'; ping-pong: warpgroup w multiplies after a round of 4 + w.
    __device__ static int order_barrier(int warpgroup) { return 4 + warpgroup; }
    /// First row of accumulator block b in the left tile.
    __device__ int block_row(int b) const {
        const int first = ping_pong ? 0 : warpgroup_ * result_blocks;
        return gated_rows ? b / result_blocks * (tile_m / 2) + (first + b % result_blocks) * block_rows
                          : (first + b) * block_rows;
    }

    /// A stage is free again when the products of the next one have been issued: one group is always under
    /// way.
    __device__ void multiply(Sums& sums, Ring& ring, int k_count, bool more) {
#pragma unroll
        for (int b = 0; b < row_blocks; ++b) fence_accumulators(sums[b]);
        int previous = 0;
        for (int k = 0; k < k_count; ++k) {
            barrier_wait(full_barrier(shared_, ring.stage), ring.parity);
            wgmma_fence();
            multiply_stage(sums, ring.stage, k);
            wgmma_commit();
            wgmma_wait<1>();
            if (k > 0) release(previous);
            previous = ring.stage;
            ring.advance();
        }
        if (ping_pong && more) named_barrier_arrive<256>(order_barrier(warpgroup_ ^ 1));
        wgmma_wait<0>();
#pragma unroll
        for (int b = 0; b < row_blocks; ++b) fence_accumulators(sums[b]);
        release(previous);
    }

    __device__ void multiply_stage(Sums& sums, int stage, int k) {
        const uint64 left = panel_descriptor(shared_ + geometry.left_at() + stage * geometry.left_bytes());
        const uint64 right = panel_descriptor(shared_ + geometry.right_at() + stage * geometry.right_bytes());
#pragma unroll
        for (int step = 0; step < stage_columns / 16; ++step) {
            const uint32 column = step * 32;
#pragma unroll
            for (int b = 0; b < row_blocks; ++b) {
                const uint32 row = block_row(b) * panel_pitch;
                Wgmma<Element, tile_n>::multiply(sums[b], advance_descriptor(left, row + column),
                                                 advance_descriptor(right, column), k | step);
            }
        }
    }

    /// This warp has read the stage.
    __device__ void release(int stage) {
        if (threadIdx.x % 32 == 0) barrier_arrive(empty_barrier(shared_, stage));
    }

    uint32 shared_;
    int warpgroup_;
    Writer writer_;
};

}  // namespace hone::linear::gemm
