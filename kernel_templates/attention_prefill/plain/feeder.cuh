// How keys and values come to shared memory, for variant plain (kernel.cu): block by block from the last that
// the tile sees down, of each first the steps of its keys, then those of its values; through registers, one
// step ahead. All threads copy. Rows that no query of the tile sees, and columns beyond the head, are zeros.
#pragma once

#include "attention_prefill/plain/geometry.cuh"
#include "attention_prefill/tile.cuh"
#include "device/packet.cuh"
#include "device/sync.cuh"

namespace hone::attention_prefill::cuda_cores {

inline constexpr Geometry geometry{.head_dim = head_dim,
                                   .tile_m = static_cast<int>(Tuned::tile_m),
                                   .tile_n = static_cast<int>(Tuned::tile_n),
                                   .thread_m = static_cast<int>(Tuned::thread_m),
                                   .columns = static_cast<int>(Tuned::columns),
                                   .vector = static_cast<int>(Tuned::vector)};

inline constexpr int threads = geometry.threads();
inline constexpr int tile_m = geometry.tile_m;
inline constexpr int tile_n = geometry.tile_n;
inline constexpr int vector = geometry.vector;
inline constexpr int key_steps = geometry.key_steps();
inline constexpr int value_steps = geometry.value_steps();
inline constexpr int value_rows = geometry.value_rows();
inline constexpr bool programmatic = Tuned::programmatic != 0;

static_assert(head_dim % vector == 0, "packets must not reach past the end of a row");
static_assert(tile_m % (2 * geometry.thread_m) == 0 && tile_n % lanes == 0, "a warp has whole rows");

/// Packets of `rows` x `packets_a_row` on their way to shared memory.
template <int rows, int packets_a_row>
struct Packets {
    /// Calls visit(i, row, column) for this thread's share; i counts it.
    template <class Visit>
    __device__ static void for_each(Visit visit) {
        constexpr int count = rows * packets_a_row;
#pragma unroll
        for (int i = 0; i < (count + threads - 1) / threads; ++i) {
            const int index = static_cast<int>(threadIdx.x) + i * threads;
            if ((i + 1) * threads > count && index >= count) continue;
            visit(i, index / packets_a_row, index % packets_a_row * vector);
        }
    }
};
using KeyPackets = Packets<tile_n, geometry.key_packets()>;
using ValuePackets = Packets<value_rows, geometry.value_packets()>;

template <class T>
__device__ inline void store_floats(float* to, const Packet<T, vector>& packet) {
    float values[vector];
    unpack(packet, values);
    if constexpr (vector == 4) {
        *reinterpret_cast<float4*>(to) = {values[0], values[1], values[2], values[3]};
    } else {
#pragma unroll
        for (int i = 0; i < vector; ++i) to[i] = values[i];
    }
}

/// The rows of a head's keys and values, one behind the other.
class TokenRows {
  public:
    __device__ TokenRows(const Call& call, const Tile& tile)
        : keys_(call.key(tile.sequence, tile.head, 0)),
          values_(call.value(tile.sequence, tile.head, 0)),
          key_stride_(call.k_token_stride),
          value_stride_(call.v_token_stride) {}

    __device__ const CacheElement* key(int row) const { return keys_ + row * key_stride_; }
    __device__ const CacheElement* value(int row) const { return values_ + row * value_stride_; }

  private:
    const CacheElement* keys_;
    const CacheElement* values_;
    int64 key_stride_;
    int64 value_stride_;
};

/// The same in pages: each row is looked up.
class PagedRows {
  public:
    __device__ PagedRows(const Call& call, const Tile& tile) : call_(call), tile_(tile) {}

    __device__ const CacheElement* key(int row) const { return call_.key(tile_.sequence, tile_.head, row); }
    __device__ const CacheElement* value(int row) const {
        return call_.value(tile_.sequence, tile_.head, row);
    }

  private:
    const Call& call_;
    const Tile& tile_;
};

class Feeder {
  public:
    __device__ Feeder(const Call& call, const Tile& tile, int last_block, float* buffers)
        : rows_(call, tile),
          begin_(tile.begin()),
          end_(tile.end(tile_m)),
          first_(last_block * tile_n),
          buffers_(buffers) {}

    __device__ void start() { load(); }

    /// The buffer of the next step, when all threads may read it.
    __device__ const float* turn() {
        float* buffer = buffers_ + parity_ * geometry.buffer_floats();
        parity_ ^= 1;
        store(buffer);
        advance();
        __syncthreads();
        load();
        return buffer;
    }

  private:
    __device__ void advance() {
        if (++step_ < key_steps + value_steps) return;
        step_ = 0;
        first_ -= tile_n;
    }
    /// Behind the last step: rows before the first, which are zeros.
    __device__ void load() {
        if (step_ < key_steps) {
            KeyPackets::for_each([&](int i, int row, int column) {
                load<true>(i, first_ + row, step_ * geometry.key_columns() + column);
            });
        } else {
            ValuePackets::for_each([&](int i, int row, int column) {
                load<false>(i, first_ + (step_ - key_steps) * value_rows + row, column);
            });
        }
    }
    template <bool is_key>
    __device__ void load(int i, int row, int column) {
        held_[i] = {};
        if (row >= begin_ && row < end_ && column < head_dim)
            held_[i] =
                load_packet<CacheElement, vector>((is_key ? rows_.key(row) : rows_.value(row)) + column);
    }
    __device__ void store(float* to) const {
        if (step_ < key_steps) {
            KeyPackets::for_each([&](int i, int row, int column) {
                store_floats(to + row * geometry.key_pitch() + column, held_[i]);
            });
        } else {
            ValuePackets::for_each([&](int i, int row, int column) {
                store_floats(to + row * geometry.value_pitch() + column, held_[i]);
            });
        }
    }

    Conditional<paged, PagedRows, TokenRows>::type rows_;
    int begin_;
    int end_;
    int first_;  ///< row of the block
    int step_ = 0;
    int parity_ = 0;
    float* buffers_;
    Packet<CacheElement, vector> held_[geometry.rounds()];
};

/// The tile's queries, as floats; all threads may read them behind the next barrier.
__device__ inline void copy_queries(float* to, const Call& call, const Tile& tile) {
    const Element* from = call.query(tile.sequence, tile.head, tile.row);
    constexpr int columns = key_steps * geometry.key_columns();
    for (int i = threadIdx.x; i < tile_m * (columns / vector); i += threads) {
        const int row = i / (columns / vector);
        const int column = i % (columns / vector) * vector;
        Packet<Element, vector> packet = {};
        if (tile.row + row < tile.sequence.q_len && column < head_dim)
            packet = load_packet<Element, vector>(from + row * call.q_token_stride + column);
        store_floats(to + row * geometry.query_pitch() + column, packet);
    }
}

}  // namespace hone::attention_prefill::cuda_cores
