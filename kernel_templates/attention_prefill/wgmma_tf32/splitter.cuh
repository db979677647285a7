// The splitters of variant wgmma_tf32 (kernel.cu): the warpgroup that brings keys and values from global
// to shared memory, in two parts each.
#pragma once

#include "attention_prefill/wgmma_tf32/tile.cuh"
#include "device/shared_tile.cuh"
#include "device/tma.cuh"
#include "device/wgmma_tf32.cuh"

namespace hone::attention_prefill::tf32 {

/// Brings each block of keys and of values through the same registers: a thread's words of one block are
/// stored when the stage is free, each making room for a word of the next block, whose load then has the
/// time of a whole block. Rounds end with __syncwarp, lest the compiler (NVRTC 13.0) move loads up to where
/// there is no room yet.
class Splitter {
  public:
    __device__ Splitter(Layout layout, const Call& call, const Tile& tile)
        : layout_(layout),
          tile_(tile),
          keys_(call.key(tile.sequence, tile.head, 0)),
          values_(call.value(tile.sequence, tile.head, 0)),
          key_stride_(call.k_strides.token),
          value_stride_(call.v_strides.token) {}

    /// Blocks of keys and of values in turn, in the order in which the consumers need them.
    __device__ void run() {
        if (tile_.begin >= tile_.end) return;
        Ring ring;
        Words held[rounds];
        int block = tile_.end_block() - 1;
        Place place;
#pragma unroll
        for (int i = 0; i < rounds; ++i) load_keys(held[i], place, block, i);
        for (; block >= tile_.first_block(); --block, ring.advance()) {
            barrier_wait(Layout::empty(layout_.full_key(ring.stage)), ring.parity ^ 1);
            place = Place();
#pragma unroll
            for (int i = 0; i < rounds; ++i) {
                store_keys(held[i], place, layout_.key(ring.stage), i);
                load_values(held[i], place, block, i);
                __syncwarp();
            }
            announce(layout_.full_key(ring.stage));
            barrier_wait(Layout::empty(layout_.full_value(ring.stage)), ring.parity ^ 1);
            place = Place();
#pragma unroll
            for (int i = 0; i < rounds; ++i) {
                store_values(held[i], place, layout_.value(ring.stage), i);
                load_keys(held[i], place, block - 1, i);
                __syncwarp();
            }
            announce(layout_.full_value(ring.stage));
        }
    }

  private:
    static constexpr int rounds = geometry.rounds();
    static constexpr int columns = geometry.lane_columns();
    static constexpr int key_chunks = columns / 4;

    /// The words of a round: two chunks of keys, or eight values of one column.
    using Words = uint32[2][4];

    /// Which words are this thread's: neighbours have neighbouring ones. Computed anew for each block, lest
    /// the compiler hold addresses over the loop.
    struct Place {
        unsigned thread;

        __device__ Place() : thread(threadIdx.x % 128) { asm volatile("" : "+r"(thread)); }
        // A warp reads whole rows of keys.
        __device__ int key(int round, int i) const { return ((round * 2 + i) * 128 + thread) / key_chunks; }
        __device__ int key_chunk(int round, int i) const {
            return ((round * 2 + i) * 128 + thread) % key_chunks;
        }
        // A warp reads 32 columns of eight values.
        __device__ int slice(int round) const { return (round * 128 + thread) / columns; }
        __device__ int column(int round) const { return (round * 128 + thread) % columns; }
    };

    /// In place of rows that no query of the tile sees, and of columns behind the head: the nearest that
    /// there are. They count nothing, for their weights or queries are zero, or nobody wants the result; what
    /// stands in the tensor there is not read.
    __device__ int nearest_key(int key) const { return min(max(key, tile_.begin), tile_.end - 1); }
    __device__ bool has_next(int key) const {
        return static_cast<unsigned>(key - tile_.begin) < static_cast<unsigned>(tile_.end - 1 - tile_.begin);
    }
    __device__ static int nearest_column(int column, int wide) {
        return columns == head_dim ? column : min(column, head_dim - wide);
    }
    /// Shared memory has only those columns behind the head that are in its last slice.
    __device__ static bool has_place(int column) { return columns == depth || column < depth; }

    __device__ void load_keys(Words& words, const Place& place, int block, int round) const {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const int key = nearest_key(block * tile_n + place.key(round, i));
            const int column = nearest_column(place.key_chunk(round, i) * 4, 4);
            load(words[i], keys_ + key * key_stride_ + column);
        }
    }
    __device__ static void store_keys(const Words& words, const Place& place, uint32 to, int round) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const int chunk = place.key_chunk(round, i);
            const uint32 at =
                chunk / 8 * geometry.key_panel_bytes() + panel_offset(place.key(round, i), chunk % 8);
            if (has_place(4 * chunk)) store_parts(to + at, geometry.key_bytes(), words[i]);
        }
    }
    /// The even values of eight become one chunk, the odd ones the other: weights in the accumulators' map
    /// are a left operand whose first four columns are the even keys.
    __device__ void load_values(Words& words, const Place& place, int block, int round) const {
        const int key = block * tile_n + place.slice(round) * slice_columns;
        const float* from =
            values_ + nearest_key(key) * value_stride_ + nearest_column(place.column(round), 1);
#pragma unroll
        for (int i = 0; i < slice_columns; ++i) {
            load(words[i % 2][i / 2], from);
            if (has_next(key + i)) from += value_stride_;
        }
    }
    __device__ static void store_values(const Words& words, const Place& place, uint32 to, int round) {
        const int slice = place.slice(round);
        const int column = place.column(round);
        if (!has_place(column)) return;
        to += slice / panel_slices * geometry.value_panel_bytes();
#pragma unroll
        for (int i = 0; i < 2; ++i)
            store_parts(to + panel_offset(column, slice % panel_slices * 2 + i), geometry.value_bytes(),
                        words[i]);
    }

    /// The tensor cores take the upper 19 bits by themselves; `behind` bytes further, what they leave.
    __device__ static void store_parts(uint32 to, uint32 behind, const uint32 (&words)[4]) {
        store_shared(to, {words[0], words[1], words[2], words[3]});
        store_shared(to + behind, {rest(words[0]), rest(words[1]), rest(words[2]), rest(words[3])});
    }
    /// Exact.
    __device__ static uint32 rest(uint32 bits) {
        return __float_as_uint(__uint_as_float(bits) - __uint_as_float(bits & tf32_mask));
    }

    /// Volatile: they stay where they are, a block before their words are needed.
    __device__ static void load(uint32& word, const float* from) {
        asm volatile("ld.global.L1::no_allocate.u32 %0, [%1];" : "=r"(word) : "l"(from));
    }
    __device__ static void load(uint32 (&words)[4], const float* from) {
        asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                     : "l"(from));
    }

    /// The block's words are there, for the tensor cores too.
    __device__ static void announce(uint32 full) {
        fence_async_proxy();
        __syncwarp();
        if (threadIdx.x % 32 == 0) barrier_arrive(full);
    }

    Layout layout_;
    const Tile& tile_;
    const float* keys_;
    const float* values_;
    int64 key_stride_;
    int64 value_stride_;
};

}  // namespace hone::attention_prefill::tf32
