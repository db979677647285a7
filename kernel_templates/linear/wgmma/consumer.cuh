// The consumers of the tensor-core product (product.cuh): warpgroups that multiply what stands in the ring.
#pragma once

#include "device/wgmma.cuh"
#include "linear/wgmma/producer.cuh"
#include "linear/wgmma/writer.cuh"

namespace hone::linear::gemm {

/// This warp has read the stage.
__device__ inline void release_stage(uint32 shared, int stage) {
    if (threadIdx.x % 32 == 0) barrier_arrive(empty_barrier(shared, stage));
}

/// First row of a warpgroup's accumulator block b in the left tile.
__device__ inline int block_row(int warpgroup, int b) {
    if constexpr (halves) return geometry.block(warpgroup, b) * block_rows;
    const int first = ping_pong ? 0 : warpgroup * result_blocks;
    return gated_rows ? b / result_blocks * (tile_m / 2) + (first + b % result_blocks) * block_rows
                      : (first + b) * block_rows;
}

/// Products of 16-bit elements.
class ElementProduct {
  public:
    /// The warpgroup's sums of `tile`; calls last_issued() when the tensor cores have all of its products. A
    /// stage is free again when the products of the next one have been issued: one group is always under way.
    template <class LastIssued>
    __device__ void multiply(uint32 shared, int warpgroup, const Work& tile, Ring& ring, Sums& sums,
                             LastIssued last_issued) const {
        fence_sums(sums);
        int previous = 0;
        for (int k = 0; k < tile.k_count; ++k) {
            barrier_wait(full_barrier(shared, ring.stage), ring.parity);
            wgmma_fence();
            multiply_stage(shared, warpgroup, sums, ring.stage, k);
            wgmma_commit();
            wgmma_wait<1>();
            if (k > 0) release_stage(shared, previous);
            previous = ring.stage;
            ring.advance();
        }
        last_issued();
        wgmma_wait<0>();
        fence_sums(sums);
        release_stage(shared, previous);
    }

    /// The same of a sum that two blocks share, with joins_early. `stays`: this block adds up the warpgroup's
    /// sums; the other warpgroup's last steps go first. Calls told_read() when all steps but those are read.
    template <class ToldRead>
    __device__ void multiply_early(uint32 shared, int warpgroup, const Work& tile, Ring& ring, Sums& sums,
                                   bool stays, ToldRead told_read) const {
        fence_sums(sums);
        int previous = 0;
        const int last = tile.k_count - geometry.last_steps();
        for (int k = 0; k < tile.k_count; ++k) {
            if (k == last && stays) {
                wgmma_wait<0>();
                told_read();
                named_barrier_sync<256>(issued_barrier());
            }
            barrier_wait(full_barrier(shared, ring.stage), ring.parity);
            wgmma_fence();
            multiply_stage(shared, warpgroup, sums, ring.stage, k);
            wgmma_commit();
            wgmma_wait<1>();
            if (k > 0) release_stage(shared, previous);
            if (k == last && !stays) told_read();
            previous = ring.stage;
            ring.advance();
        }
        if (!stays) named_barrier_arrive<256>(issued_barrier());
        wgmma_wait<0>();
        fence_sums(sums);
        if (stays)
            named_barrier_sync<256>(read_barrier());
        else
            named_barrier_arrive<256>(read_barrier());
    }

  private:
    /// Of the warpgroup whose sums another block adds up: its products are issued; and have read the ring.
    static constexpr int issued_barrier() { return 4; }
    static constexpr int read_barrier() { return 5; }

    __device__ static void fence_sums(Sums& sums) {
#pragma unroll
        for (int b = 0; b < row_blocks; ++b) fence_accumulators(sums[b]);
        if constexpr (halves) fence_accumulators(half_of(sums));
    }
    __device__ static void multiply_stage(uint32 shared, int warpgroup, Sums& sums, int stage, int k) {
        const uint64 left = panel_descriptor(shared + geometry.left_at() + stage * geometry.left_bytes());
        const uint64 right = panel_descriptor(shared + geometry.right_at() + stage * geometry.right_bytes());
#pragma unroll
        for (int step = 0; step < operands.columns / 16; ++step) {
            const uint32 column = step * 32;
#pragma unroll
            for (int b = 0; b < row_blocks; ++b) {
                const uint32 row = block_row(warpgroup, b) * panel_pitch;
                Wgmma<Element, tile_n>::multiply(sums[b], advance_descriptor(left, row + column),
                                                 advance_descriptor(right, column), k | step);
            }
            if constexpr (halves) {
                const uint32 row = geometry.block(warpgroup, row_blocks) * block_rows * panel_pitch;
                const uint32 first = geometry.first_column(warpgroup, row_blocks) * panel_pitch;
                Wgmma<Element, half_columns>::multiply(half_of(sums), advance_descriptor(left, row + column),
                                                       advance_descriptor(right, first + column), k | step);
            }
        }
    }
};

/// `Product` as ElementProduct.
template <class Product>
class Consumer {
  public:
    __device__ Consumer(uint32 shared, const Maps& maps, const GivenResults& results, const Product& product,
                        int warpgroup)
        : shared_(shared),
          product_(product),
          warpgroup_(warpgroup),
          writer_(shared, maps.result, results, warpgroup) {}

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
            writer_.ask(tile, rank);
            Sums sums;
            if constexpr (geometry.joins_early()) {
                join_early(tile, ring, sums, rank);
                continue;
            }
            if constexpr (ping_pong) named_barrier_sync<256>(order_barrier(warpgroup_));
            product_.multiply(shared_, warpgroup_, tile, ring, sums, [&] {
                if (ping_pong && i + 1 < count) named_barrier_arrive<256>(order_barrier(warpgroup_ ^ 1));
            });
            if constexpr (takes_squares()) multiply_by_factors(block_row(warpgroup_, 0), sums);
            if constexpr (geometry.has_inbox()) {
                writer_.store_from_inbox(sums, tile, rank);
            } else if constexpr (cluster_k > 1) {
                writer_.store_shared(sums, tile, rank);
            } else if (geometry.tail_pairs && i >= schedule.whole_count()) {
                writer_.store_paired(sums, tile, rank);
            } else {
                writer_.store(sums, tile);
            }
        }
        if (geometry.tail_pairs && count == schedule.whole_count()) cluster_wait();
        writer_.finish();
    }

  private:
    __device__ void join_early(const Work& tile, Ring& ring, Sums& sums, int rank) {
        const bool stays = warpgroup_ == rank;
        product_.multiply_early(shared_, warpgroup_, tile, ring, sums, stays, [&] {
            cluster_wait();
            if (threadIdx.x % 32 == 0)
                barrier_arrive_remote(remote_address(steps_read_barrier(shared_), rank ^ 1));
            __syncwarp();
        });
        if (stays)
            writer_.store_joined(sums, tile, tile.k_count);
        else
            writer_.send(sums, rank ^ 1, k_tiles - tile.k_count);
    }

    /// Barriers 1 and 2 are the writers'; ping-pong: warpgroup w multiplies after a round of 4 + w.
    __device__ static int order_barrier(int warpgroup) { return 4 + warpgroup; }

    uint32 shared_;
    const Product& product_;
    int warpgroup_;
    Writer writer_;
};

}  // namespace hone::linear::gemm
