// How the ring of the tiled product (product.cuh) is filled: by asynchronous copies (sm_80), several stages
// ahead, or through registers, one stage ahead. All threads copy; both ways have the same three calls:
//   start()     the first stages; returns when all threads may read stage 0
//   feed(step)  a share of the work for a later stage, beside the multiplication of each step
//   turn()      at a stage's last step, when all its fragments have been asked for: returns when all threads
//               may read the next stage; from then on nobody reads the one before
#pragma once

#include "device/packet.cuh"
#include "device/shared_tile.cuh"
#include "device/sync.cuh"
#include "linear/mma_tiles/tile.cuh"
#include "linear/tensors.cuh"

namespace hone::linear::tiles {

inline constexpr int rows_a_round = geometry.rows_a_round();
inline constexpr int x_rounds = geometry.x_rounds();
inline constexpr int rounds = geometry.rounds();
inline constexpr int steps = tile_k / 16;
inline constexpr uint32 stage_bytes = geometry.stage_bytes();

/// Slot of a ring after `slot`, both as byte offsets.
__device__ inline uint32 next_slot(uint32 slot) {
    return slot == (stages - 1) * stage_bytes ? 0 : slot + stage_bytes;
}

/// The 16 bytes of each round that this thread copies, in the stage to be copied next.
class Chunks {
  public:
    __device__ Chunks(const Tensors& tensors, const Tile& tile) : left_(tile.k_count) {
        const int row = threadIdx.x / geometry.chunks();
        const int chunk = threadIdx.x % geometry.chunks();
        column_ = tile.first_k * tile_k + chunk * 8;
        place = swizzled_offset<tile_k>(row, chunk);
        source(0, tensors.x, tensors.x_stride, tile.token + row);
        source(1, tensors.weight, tensors.weight_stride, tile.column + row);
        if constexpr (gated) source(products, tensors.up, tensors.up_stride, tile.column + row);
        tokens_ = static_cast<int>(tensors.tokens) - tile.token - row;
        weight_rows_ = out - tile.column - row;
    }

    /// Calls copy(round, from, exists) for rounds `first` to `end` of the stage `ahead` further on. Rows that
    /// do not exist are left out: their products are not stored. Columns that do not exist must become zeros.
    template <class Copy>
    __device__ void for_rounds(int first, int end, int ahead, Copy copy) const {
        const bool more = left_ > ahead;
        const bool exists = in % tile_k == 0 || column_ + ahead * tile_k < in;
#pragma unroll
        for (int round = 0; round < rounds; ++round) {
            if (round < first || round >= end) continue;
            const int operand = round < x_rounds ? 0 : 1 + (round - x_rounds) / geometry.weight_rounds();
            const int i = operand == 0 ? round : (round - x_rounds) % geometry.weight_rounds();
            const bool is_row = operand == 0    ? i * rows_a_round < tokens_
                                : whole_columns ? true
                                                : i * rows_a_round < weight_rows_;
            const Element* from = from_[operand] + i * step_[operand] + ahead * tile_k;
            if (more && is_row) copy(round, from, exists);
        }
    }
    __device__ void advance(int count) {
        left_ -= count;
        column_ += count * tile_k;
#pragma unroll
        for (int operand = 0; operand <= products; ++operand) from_[operand] += count * tile_k;
    }

    uint32 place;  ///< where the first round stands in a stage

  private:
    __device__ void source(int operand, const Element* matrix, int64 stride, int row) {
        from_[operand] = matrix + row * stride + column_;
        step_[operand] = rows_a_round * stride;
    }

    const Element* from_[1 + products];
    int64 step_[1 + products];  ///< elements between rounds
    int column_;
    int left_;  ///< stages that have not been asked for
    int tokens_;
    int weight_rows_;  ///< that exist from this thread's first row on
};

#if __CUDA_ARCH__ >= 800
/// A group of copies a stage. While stage k is multiplied, stage k + stages - 1 is asked for: its slot was
/// stage k - 1's, which nobody reads since the turn to k. A turn to k + 1 leaves stages - 2 groups under way.
class AsyncFeeder {
  public:
    __device__ AsyncFeeder(uint32 ring, const Tensors& tensors, const Tile& tile)
        : chunks_(tensors, tile), to_(ring + chunks_.place) {}

    /// Weights do not depend on the kernel before: with programmatic launch they come while it ends, all of
    /// them in the first group.
    __device__ void start() {
#pragma unroll
        for (int stage = 0; stage < ahead; ++stage) {
            copy(x_rounds, rounds, stage, stage * stage_bytes);
            if constexpr (!programmatic) {
                copy(0, x_rounds, stage, stage * stage_bytes);
                commit_copies();
            }
        }
        if constexpr (programmatic) {
            wait_for_predecessor();
#pragma unroll
            for (int stage = 0; stage < ahead; ++stage) {
                copy(0, x_rounds, stage, stage * stage_bytes);
                commit_copies();
            }
        }
        chunks_.advance(ahead);
        wait_for_copies<stages - 2>();
        __syncthreads();
    }
    __device__ void feed(int step) { copy(rounds * step / steps, rounds * (step + 1) / steps, 0, slot_); }
    __device__ void turn() {
        commit_copies();
        chunks_.advance(1);
        slot_ = next_slot(slot_);
        wait_for_copies<stages - 2>();
        __syncthreads();
    }

  private:
    static constexpr int ahead = stages - 1;

    __device__ void copy(int first, int end, int stage, uint32 slot) {
        chunks_.for_rounds(first, end, stage, [&](int round, const Element* from, bool exists) {
            const uint32 to = to_ + slot + round * rows_a_round * geometry.row_bytes();
            if constexpr (in % tile_k == 0) {
                copy_chunk_async(to, from);
            } else {
                copy_chunk_async_or_zero(to, from, exists);
            }
        });
    }

    Chunks chunks_;
    uint32 to_;
    uint32 slot_ = ahead * stage_bytes;
};
#endif

/// While stage k is multiplied, stage k + 1 comes into registers; they are stored at the turn to it, into the
/// slot of stage k - 1, which nobody reads since the turn to k.
class RegisterFeeder {
  public:
    __device__ RegisterFeeder(uint32 ring, const Tensors& tensors, const Tile& tile)
        : chunks_(tensors, tile), to_(ring + chunks_.place) {}

    __device__ void start() {
        load(x_rounds, rounds);
        if constexpr (programmatic) wait_for_predecessor();
        load(0, x_rounds);
        chunks_.advance(1);
        store();
    }
    __device__ void feed(int step) {
        if (step == 0) load(0, rounds);
    }
    __device__ void turn() {
        chunks_.advance(1);
        store();
    }

  private:
    __device__ void load(int first, int end) {
        chunks_.for_rounds(first, end, 0, [&](int round, const Element* from, bool exists) {
            held_[round] = exists ? load_word<LoadHint::normal, 16>(from) : uint4{0, 0, 0, 0};
        });
    }
    /// Past the last stage the old words once more: nobody reads them.
    __device__ void store() {
#pragma unroll
        for (int round = 0; round < rounds; ++round)
            store_shared(to_ + slot_ + round * rows_a_round * geometry.row_bytes(), held_[round]);
        slot_ = next_slot(slot_);
        __syncthreads();
    }

    Chunks chunks_;
    uint32 to_;
    uint32 slot_ = 0;
    uint4 held_[rounds] = {};
};

}  // namespace hone::linear::tiles
