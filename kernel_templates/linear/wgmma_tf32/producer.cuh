// Warpgroup 0 of the fp32 tensor-core product (product.cuh): one thread that keeps the ring of stages
// full, and three warps that split the right operand.
#pragma once

#include "device/shared_tile.cuh"
#include "device/tma.cuh"
#include "device/wgmma_tf32.cuh"
#include "linear/wgmma_tf32/tile.cuh"

namespace hone::linear::tf32 {

struct Maps {
    const TensorMap& x;
    const TensorMap& weight;  ///< the gate where gated
    const TensorMap& up;
};

class Producer {
  public:
    __device__ Producer(uint32 shared, const Maps& maps) : shared_(shared), maps_(maps) {}

    __device__ void run(const Schedule& schedule, int rank) {
        Ring ring;
        int early = programmatic ? start_early(schedule.tile(Schedule::first(), rank)) : 0;
        ring.advance(early);
        for (int index = Schedule::first(); index < schedule.end(); index += Schedule::step()) {
            const Tile tile = schedule.tile(index, rank);
            for (int k = early; k < tile.k_count; ++k, ring.advance()) {
                barrier_wait(empty_barrier(shared_, ring.stage), ring.parity ^ 1);
                expect(ring.stage);
                load_weight(tile, tile.first_k + k, ring.stage);
                load_x(tile, tile.first_k + k, ring.stage);
            }
            early = 0;
        }
    }

  private:
    /// Weights do not depend on the kernel before: they fill the ring while that one ends.
    __device__ int start_early(const Tile& tile) {
        const int count = min(tile.k_count, stages);
        for (int k = 0; k < count; ++k) {
            expect(k);
            load_weight(tile, tile.first_k + k, k);
        }
        wait_for_predecessor();
        fence_async_proxy_global();
        for (int k = 0; k < count; ++k) load_x(tile, tile.first_k + k, k);
        return count;
    }

    __device__ void expect(int stage) {
        barrier_arrive_expecting(full_barrier(shared_, stage), geometry.copied_bytes());
    }
    __device__ void load_weight(const Tile& tile, int k, int stage) {
        constexpr L2Hint hint = Tuned::l2_hint != 0 ? L2Hint::evict_first : L2Hint::normal;
        const int first = swapped ? tile.row : tile.column;
        load<swapped, hint>(maps_.weight, 0, k, first, stage);
        if constexpr (gated) load<swapped, hint>(maps_.up, geometry.weight_box(), k, first, stage);
    }
    __device__ void load_x(const Tile& tile, int k, int stage) {
        constexpr L2Hint hint = Tuned::l2_hint != 0 ? L2Hint::evict_last : L2Hint::normal;
        load<!swapped, hint>(maps_.x, 0, k, swapped ? tile.column : tile.row, stage);
    }
    /// The box whose first row is `row` of the operand's tile and `from` of the matrix.
    template <bool left, L2Hint hint>
    __device__ void load(const TensorMap& map, int row, int k, int from, int stage) {
        load_box<hint>(stage_at(shared_, stage) + (left ? 0 : geometry.right_at()) + row * row_bytes, map,
                       k * stage_columns, from, full_barrier(shared_, stage));
    }

    uint32 shared_;
    const Maps& maps_;
};

/// Writes beside the right operand of every stage what the tensor cores do not see of it. The two have the
/// same swizzle: the split goes word by word.
class Splitter {
  public:
    __device__ explicit Splitter(uint32 shared) : shared_(shared) {}

    __device__ void run(const Schedule& schedule, int rank) {
        Ring ring;
        for (int index = Schedule::first(); index < schedule.end(); index += Schedule::step()) {
            const int k_count = schedule.tile(index, rank).k_count;
            for (int k = 0; k < k_count; ++k, ring.advance()) {
                barrier_wait(full_barrier(shared_, ring.stage), ring.parity);
                split(stage_at(shared_, ring.stage) + geometry.right_at());
                fence_async_proxy();
                __syncwarp();
                if (threadIdx.x % 32 == 0) barrier_arrive(split_barrier(shared_, ring.stage));
            }
        }
    }

  private:
    static constexpr int lanes = 32 * splitter_warps;
    static constexpr int words = geometry.right_bytes() / 16;
    static constexpr int together = 4;  ///< loads under way

    __device__ static void split(uint32 right) {
        const int lane = threadIdx.x - 32;
#pragma unroll 1
        for (int first = lane; first < words; first += together * lanes) {
            uint4 word[together];
#pragma unroll
            for (int i = 0; i < together; ++i) {
                if (first + i * lanes < words) word[i] = load_shared_16(right + (first + i * lanes) * 16);
            }
#pragma unroll
            for (int i = 0; i < together; ++i) {
                if (first + i * lanes >= words) continue;
                store_shared(right + geometry.right_bytes() + (first + i * lanes) * 16,
                             {rest(word[i].x), rest(word[i].y), rest(word[i].z), rest(word[i].w)});
            }
        }
    }
    /// Exact.
    __device__ static uint32 rest(uint32 bits) {
        return __float_as_uint(__uint_as_float(bits) - __uint_as_float(bits & tf32_mask));
    }

    uint32 shared_;
};

}  // namespace hone::linear::tf32
