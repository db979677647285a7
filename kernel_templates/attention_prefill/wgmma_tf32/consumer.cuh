// The consumers of variant wgmma_tf32 (kernel.cu): warpgroups that multiply, each 64 queries of the
// tile.
#pragma once

#include "attention_prefill/wgmma_tf32/softmax.cuh"
#include "device/packet.cuh"
#include "device/shared_tile.cuh"
#include "device/warpgroup.cuh"
#include "device/wgmma_tf32.cuh"

namespace hone::attention_prefill::tf32 {

/// A thread's sums of weights times values, in the accumulators' map (device/wgmma.cuh).
using Sums = float[depth / 2];

/// A thread's part of 64 rows x 8 columns of a left operand: the nearest tf32 numbers, and what they leave.
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
    __device__ Consumer(Layout layout, const Call& call, const Tile& tile, int warpgroup)
        : layout_(layout),
          call_(call),
          tile_(tile),
          softmax_((has_softcap ? call.softcap : call.scale) * log2_e),
          warpgroup_(warpgroup),
          first_row_(tile.row + warpgroup * block_rows),
          row_(first_row_ + threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 4) {}

    /// From the last block of keys to the first, as far as this warpgroup's queries see them.
    __device__ void run() {
        load_queries();
        const int last_row = min(first_row_ + block_rows, tile_.sequence.q_len) - 1;
        const int begin = tile_.sequence.begin(first_row_) / tile_n;
        const int end = last_row < first_row_ ? 0 : (tile_.sequence.end(last_row) + tile_n - 1) / tile_n;
        Sums sums = {};
        int block = tile_.end_block() - 1;
        for (; block >= tile_.first_block() && block >= end; --block) skip();
        for (; block >= tile_.first_block() && block >= begin; --block) attend(sums, block);
        for (; block >= tile_.first_block(); --block) skip();
        store(sums);
    }

  private:
    static constexpr float log2_e = 1.44269504088896341f;
    static constexpr int key_slices = depth / slice_columns;
    static constexpr int part_slices = (key_slices + geometry.score_parts() - 1) / geometry.score_parts();
    static constexpr int value_slices = tile_n / slice_columns;

    __device__ void attend(Sums& sums, int block) {
        Scores scores;
        barrier_wait(layout_.full_key(ring_.stage), ring_.parity);
        multiply_keys(scores);
        release(layout_.full_key(ring_.stage));
        mask(scores, block * tile_n);
        float factors[2];
        softmax_.next(scores, factors);
        Sums part;
        barrier_wait(layout_.full_value(ring_.stage), ring_.parity);
        multiply_values(part, scores);
        release(layout_.full_value(ring_.stage));
        ring_.advance();
#pragma unroll
        for (int i = 0; i < depth / 2; ++i) sums[i] = fmaf(sums[i], factors[i / 2 % 2], part[i]);
    }
    /// A block that only other warpgroups see. It may be released once it is there, not before: barriers
    /// count arrivals of one phase, and no lane may still look at it then.
    __device__ void skip() {
        for (const uint32 full : {layout_.full_key(ring_.stage), layout_.full_value(ring_.stage)}) {
            barrier_wait(full, ring_.parity);
            __syncwarp();
            release(full);
        }
        ring_.advance();
    }

    /// This warpgroup's queries, by its own threads: they read them, too.
    __device__ void load_queries() {
        const float* first = call_.query(tile_.sequence, tile_.head, first_row_);
        constexpr int chunks = depth / 4;
#pragma unroll 4
        for (int i = threadIdx.x % 128; i < block_rows * chunks; i += 128) {
            const int row = i / chunks;
            const int chunk = i % chunks;
            const bool exists = first_row_ + row < tile_.sequence.q_len && chunk * 4 < head_dim;
            copy_chunk_async_or_zero(layout_.query(warpgroup_) + chunk / 8 * geometry.query_panel_bytes() +
                                         panel_offset(row, chunk % 8),
                                     first + row * call_.q_strides.token + chunk * 4, exists);
        }
        commit_copies();
        wait_for_copies<0>();
        named_barrier_sync<128>(1 + warpgroup_);
    }

    /// The products of one slice run while the next one is read and split; those of two slices are under way
    /// at most, and a third one's fragments may be written. The tensor cores cut a sum off after every
    /// instruction, by more the greater it is: small products have sums of their own, and large ones have one
    /// for each part of the head.
    __device__ void multiply_keys(Scores& scores) {
        constexpr int parts = geometry.score_parts();
        float large[parts][tile_n / 2];
        float small[tile_n / 2];
        Fragments held[3];
        uint32 words[4];
        load_query_words(words, 0);
        held[0].split(words);
#pragma unroll
        for (int part = 0; part < parts; ++part) fence_accumulators(large[part]);
        fence_accumulators(small);
#pragma unroll
        for (int slice = 0; slice < key_slices; ++slice) {
            const Fragments& left = held[slice % 3];
            const uint32 at = layout_.key(ring_.stage) + slice / panel_slices * geometry.key_panel_bytes() +
                              slice % panel_slices * (slice_columns * 4);
            const uint64 right = panel_descriptor(at);
            const uint64 rest = panel_descriptor(at + geometry.key_bytes());
            wgmma_fence();
            WgmmaTf32<tile_n>::multiply(small, left.high, rest, slice);
            WgmmaTf32<tile_n>::multiply(large[slice / part_slices], left.high, right, slice % part_slices);
            WgmmaTf32<tile_n>::multiply(small, left.low, right, 1);
            wgmma_commit();
            if (slice + 1 < key_slices) {
                load_query_words(words, slice + 1);
                held[(slice + 1) % 3].split(words);
            }
            wgmma_wait<1>();
        }
        wgmma_wait<0>();
#pragma unroll
        for (int part = 0; part < parts; ++part) fence_accumulators(large[part]);
        fence_accumulators(small);
#pragma unroll
        for (int i = 0; i < tile_n / 2; ++i)
            scores[i] = (parts == 2 ? large[0][i] + large[parts - 1][i] : large[0][i]) + small[i];
    }
    __device__ void load_query_words(uint32 (&words)[4], int slice) const {
        const int row = threadIdx.x / 32 % 4 * 16 + threadIdx.x % 16;
        const int chunk = slice % panel_slices * 2 + threadIdx.x % 32 / 16;
        load_matrices(words, layout_.query(warpgroup_) + slice / panel_slices * geometry.query_panel_bytes() +
                                 panel_offset(row, chunk));
    }

    /// Weights are split as they are needed, twice: all small products come before the large ones.
    __device__ void multiply_values(Sums& part, const Scores& weights) {
        Fragments held[3];
        split_weights(held[0], weights, 0);
        fence_accumulators(part);
#pragma unroll
        for (int slice = 0; slice < value_slices; ++slice) {
            const Fragments& left = held[slice % 3];
            const uint32 at = value_at(slice);
            wgmma_fence();
            WgmmaTf32<depth>::multiply(part, left.high, panel_descriptor(at + geometry.value_bytes()), slice);
            WgmmaTf32<depth>::multiply(part, left.low, panel_descriptor(at), 1);
            wgmma_commit();
            if (slice + 1 < value_slices) split_weights(held[(slice + 1) % 3], weights, slice + 1);
            wgmma_wait<1>();
        }
        uint32 high[3][4];
        round_weights(high[0], weights, 0);
#pragma unroll
        for (int slice = 0; slice < value_slices; ++slice) {
            wgmma_fence();
            WgmmaTf32<depth>::multiply(part, high[slice % 3], panel_descriptor(value_at(slice)), 1);
            wgmma_commit();
            if (slice + 1 < value_slices) round_weights(high[(slice + 1) % 3], weights, slice + 1);
            wgmma_wait<1>();
        }
        wgmma_wait<0>();
        fence_accumulators(part);
    }
    __device__ uint32 value_at(int slice) const {
        return layout_.value(ring_.stage) + slice / panel_slices * geometry.value_panel_bytes() +
               slice % panel_slices * (slice_columns * 4);
    }

    /// A slice of the weights as a left operand: its columns c and c + 4 are those that this lane holds, 2 c
    /// and 2 c + 1 of eight keys. The splitters put values into the same order.
    __device__ static void weight_words(uint32 (&words)[4], const Scores& weights, int slice) {
#pragma unroll
        for (int i = 0; i < 4; ++i) words[i] = __float_as_uint(weights[4 * slice + i % 2 * 2 + i / 2]);
    }
    __device__ static void split_weights(Fragments& fragments, const Scores& weights, int slice) {
        uint32 words[4];
        weight_words(words, weights, slice);
        fragments.split(words);
    }
    __device__ static void round_weights(uint32 (&high)[4], const Scores& weights, int slice) {
        uint32 words[4];
        weight_words(words, weights, slice);
#pragma unroll
        for (int i = 0; i < 4; ++i) high[i] = round_to_tf32(words[i]);
    }

    /// Masks only blocks that some row of the warpgroup sees in part.
    __device__ void mask(Scores& scores, int column) const {
        if constexpr (has_softcap) {
            const float factor = call_.scale / call_.softcap;
#pragma unroll
            for (int i = 0; i < tile_n / 2; ++i) scores[i] = tanhf(scores[i] * factor);
        }
        if (column + tile_n > tile_.sequence.end(first_row_) ||
            column < tile_.sequence.begin(first_row_ + block_rows - 1))
            Visible(tile_, row_, column).mask(scores);
    }

    /// This warp has read what `full` announced.
    __device__ static void release(uint32 full) {
        if (threadIdx.x % 32 == 0) barrier_arrive(Layout::empty(full));
    }

    /// Four lanes write 32 bytes of a row: every sector of level 2 as a whole.
    __device__ void store(const Sums& sums) const {
        float inverse[2], lse[2];
        softmax_.finish(call_, tile_.head, inverse, lse);
        const int lane = threadIdx.x % 4;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int token = row_ + 8 * half;
            if (token >= tile_.sequence.q_len) continue;
            float* out = call_.result(tile_.sequence, tile_.head, token);
#pragma unroll
            for (int i = 0; i < depth / 8; ++i) {
                const int at = 4 * i + 2 * half;
                if (depth == head_dim || i * 8 + lane * 2 < head_dim)
                    store_packet(out + i * 8 + lane * 2,
                                 Packet<float, 2>{sums[at] * inverse[half], sums[at + 1] * inverse[half]});
            }
            if (has_lse && lane == 0) *call_.lse_of(tile_.sequence, tile_.head, token) = lse[half];
        }
    }

    Layout layout_;
    const Call& call_;
    const Tile& tile_;
    Softmax softmax_;
    int warpgroup_;
    int first_row_;  ///< query of this warpgroup
    int row_;        ///< this lane's first one
    Ring ring_;
};

}  // namespace hone::attention_prefill::tf32
