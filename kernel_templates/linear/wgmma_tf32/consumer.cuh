// The consumers of the fp32 tensor-core product (product.cuh): warpgroups that multiply what stands in the
// ring, 64 rows and a stage at a time.
#pragma once

#include "device/shared_tile.cuh"
#include "device/wgmma_tf32.cuh"
#include "linear/wgmma_tf32/writer.cuh"

namespace hone::linear::tf32 {

/// A thread's part of 64 rows x 8 columns of the left operand: the nearest tf32 numbers, and what they leave.
struct Fragments {
    uint32 high[4];
    uint32 low[4];

    __device__ void split(const uint32 (&words)[4]) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            high[i] = round_to_tf32(words[i]);
            low[i] = __float_as_uint(__uint_as_float(words[i]) - __uint_as_float(high[i]));
        }
    }
};

class Consumer {
  public:
    __device__ Consumer(uint32 shared, const Tensors& tensors, int warpgroup)
        : shared_(shared), warpgroup_(warpgroup), writer_(shared, tensors, warpgroup) {
        const int row = threadIdx.x / 32 % 4 * 16 + threadIdx.x % 16;
        const int chunk = threadIdx.x % 32 / 16;
        place_ = row * row_bytes + ((chunk ^ (row % 8)) << 4);
    }

    __device__ void run(const Schedule& schedule, int rank) {
        Ring ring;
        for (int index = Schedule::first(); index < schedule.end(); index += Schedule::step()) {
            const Tile tile = schedule.tile(index, rank);
            Sums sums = {};
            multiply(sums, ring, tile.k_count);
            if constexpr (cluster_k > 1) {
                writer_.store_shared(sums, tile, rank);
            } else {
                writer_.store(sums, tile);
            }
        }
    }

  private:
    /// The products of one slice run while the next one is read and split: those of two slices are under way
    /// at most, and their fragments take turns. The next stage is waited for while no product is: a loop in
    /// between would let the compiler forget that products still read their fragments.
    __device__ void multiply(Sums& sums, Ring& ring, int k_count) {
        Fragments held[2];
        uint32 words[4];
        wait_for_stage(ring);
        load_matrices(words, left_at(ring.stage, 0, 0));
        held[0].split(words);
        for (int k = 0; k < k_count; ++k) {
            const int stage = ring.stage;
            ring.advance();
#pragma unroll
            for (int b = 0; b < row_blocks; ++b) {
                const bool last_block = b + 1 == row_blocks;
                if (last_block && k + 1 < k_count) wait_for_stage(ring);
                // Behind the last stage this is no slice at all, and nobody multiplies it.
                const uint32 next_block = last_block ? left_at(ring.stage, 0, 0) : left_at(stage, b + 1, 0);
                float part[tile_n / 2];
                fence_accumulators(part);
#pragma unroll
                for (int slice = 0; slice < slices; ++slice) {
                    wgmma_fence();
                    multiply_slice(part, held[slice % 2], stage, slice);
                    wgmma_commit();
                    load_matrices(words, slice + 1 < slices ? left_at(stage, b, slice + 1) : next_block);
                    wgmma_wait<1>();
                    held[(slice + 1) % 2].split(words);
                }
                wgmma_wait<0>();
                fence_accumulators(part);
#pragma unroll
                for (int i = 0; i < tile_n / 2; ++i) sums[b][i] += part[i];
            }
            release(stage);
        }
    }

    /// Small products first: the tensor cores cut a sum off after every instruction.
    __device__ void multiply_slice(float (&part)[tile_n / 2], const Fragments& left, int stage, int slice) {
        const uint32 at = stage_at(shared_, stage) + slice * (slice_columns * 4);
        const uint64 right = panel_descriptor(at + geometry.right_at());
        const uint64 rest = panel_descriptor(at + geometry.rest_at());
        WgmmaTf32<tile_n>::multiply(part, left.high, rest, slice);
        WgmmaTf32<tile_n>::multiply(part, left.low, right, 1);
        WgmmaTf32<tile_n>::multiply(part, left.high, right, 1);
    }

    /// What this lane names to load_matrices, for row block b.
    __device__ uint32 left_at(int stage, int b, int slice) const {
        return stage_at(shared_, stage) + ((block_row(b) * row_bytes + place_) ^ (slice * slice_columns * 4));
    }
    /// First row of row block b in the left tile.
    __device__ int block_row(int b) const {
        const int first = warpgroup_ * result_blocks;
        return gated_rows ? b / result_blocks * (tile_m / 2) + (first + b % result_blocks) * block_rows
                          : (first + b) * block_rows;
    }

    /// Until both operands are there, the right one split.
    __device__ void wait_for_stage(const Ring& ring) {
        barrier_wait(full_barrier(shared_, ring.stage), ring.parity);
        barrier_wait(split_barrier(shared_, ring.stage), ring.parity);
    }
    /// This warp has read the stage.
    __device__ void release(int stage) {
        if (threadIdx.x % 32 == 0) barrier_arrive(empty_barrier(shared_, stage));
    }

    uint32 shared_;
    int warpgroup_;
    int place_;  ///< in a block of 64 rows
    Writer writer_;
};

}  // namespace hone::linear::tf32
