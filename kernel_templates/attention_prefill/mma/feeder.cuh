// How keys and values come to shared memory, for variant mma (kernel.cu): by asynchronous copies (sm_80),
// several stages ahead, or through registers, one stage ahead; so do codes, which become numbers there.
// Stages hold, in turn, the keys and the values of a block of tile_n tokens, from the last block that the
// tile sees down to the first. All threads copy; both ways have the same two calls:
//   start()  the first stages are on their way
//   turn()   returns the shared address of the next stage when all threads may read it; from then on nobody
//            reads the one before
#pragma once

#include "attention_prefill/mma/geometry.cuh"
#include "attention_prefill/tile.cuh"
#include "device/packet.cuh"
#include "device/shared_tile.cuh"
#include "device/sync.cuh"
#include "device/widen_fp8.cuh"

namespace hone::attention_prefill::warp_mma {

inline constexpr Geometry geometry{.head_dim = head_dim,
                                   .warps = static_cast<int>(Tuned::warps),
                                   .warp_rows = static_cast<int>(Tuned::warp_rows),
                                   .tile_n = static_cast<int>(Tuned::tile_n),
                                   .stages = static_cast<int>(Tuned::stages),
                                   .blocks_per_sm = static_cast<int>(Tuned::blocks_per_sm),
                                   .query_in_registers = Tuned::query_in_registers != 0};

inline constexpr int threads = geometry.threads();
inline constexpr int tile_m = geometry.tile_m();
inline constexpr int tile_n = geometry.tile_n;
inline constexpr int stages = geometry.stages;
inline constexpr int pitch = geometry.pitch();
inline constexpr int rows_a_round = geometry.rows_a_round();
inline constexpr bool programmatic = Tuned::programmatic != 0;

static_assert(head_dim % 8 == 0, "rows start at multiples of 16 bytes");
static_assert(tile_n % 16 == 0, "a product takes 16 values at a time");
static_assert(tile_n % rows_a_round == 0 && tile_m % rows_a_round == 0, "tiles are copied in whole rounds");
static_assert(stages >= 2, "one stage is read while another is filled");

/// What this thread copies of a tensor's rows: every rows_a_round-th row, of each every eighth chunk of 8
/// elements.
template <class T>
class Rows {
  public:
    /// `from`: row 0. Rows outside [begin, end) are zeros: what no query of the tile sees may be anything,
    /// NaN too.
    __device__ Rows(const T* from, int64 stride, int begin, int end)
        : from_(from + chunk() * 8), stride_(stride), begin_(begin), end_(end) {}

    /// Calls copy(round, offset, from, exists) for `count` rows from `first` on; offset: in shared memory, of
    /// that row and chunk behind the first row's.
    template <int count, class Copy>
    __device__ void for_chunks(int first, Copy copy) const {
#pragma unroll
        for (int round = 0; round < count / rows_a_round; ++round) {
            const int row = first + static_cast<int>(threadIdx.x) / 8 + round * rows_a_round;
            const bool exists = row >= begin_ && row < end_;
            const T* from = from_ + (exists ? row * stride_ : 0);
#pragma unroll
            for (int i = 0; i < geometry.chunk_rounds(); ++i) {
                if (chunk() + 8 * i >= geometry.chunks()) continue;
                copy(round * geometry.chunk_rounds() + i, place() + round * rows_a_round * pitch + i * 128,
                     from + i * 64, exists);
            }
        }
    }

  private:
    __device__ static int chunk() { return threadIdx.x % 8; }
    __device__ static uint32 place() { return threadIdx.x / 8 * pitch + chunk() * 16; }

    const T* from_;
    int64 stride_;
    int begin_;
    int end_;
};

/// The stages in their order: number 2 i are the keys of block last - i, 2 i + 1 its values.
class TokenItems {
  public:
    __device__ TokenItems(const Call& call, const Tile& tile, int first_block, int last_block)
        : keys_(call.key(tile.sequence, tile.head, 0), call.k_token_stride, tile.begin(), tile.end(tile_m)),
          values_(call.value(tile.sequence, tile.head, 0), call.v_token_stride, tile.begin(),
                  tile.end(tile_m)),
          last_(last_block),
          count_(2 * (last_block - first_block + 1)) {}

    template <class Copy>
    __device__ void for_chunks(int item, Copy copy) const {
        if (item >= count_) return;
        const Rows<CacheElement> rows = item % 2 == 0 ? keys_ : values_;
        rows.for_chunks<tile_n>((last_ - item / 2) * tile_n, copy);
    }

  private:
    Rows<CacheElement> keys_;
    Rows<CacheElement> values_;
    int last_;
    int count_;
};

/// The same where keys and values come in pages. The pages of a block are looked up before its keys are asked
/// for, right behind the values of the block before: the table's latency passes beside a block's products.
class PagedItems {
  public:
    __device__ PagedItems(const Call& call, const Tile& tile, int first_block, int last_block)
        : call_(call),
          tile_(tile),
          keys_(call.k + tile.head / group_size * call.k_head_stride + threadIdx.x % 8 * 8),
          values_(call.v + tile.head / group_size * call.v_head_stride + threadIdx.x % 8 * 8),
          begin_(tile.begin()),
          end_(tile.end(tile_m)),
          last_(last_block),
          count_(2 * (last_block - first_block + 1)) {
        look_up(last_block * tile_n);
    }

    /// As Rows::for_chunks().
    template <class Copy>
    __device__ void for_chunks(int item, Copy copy) {
        if (item >= count_) return;
        const int first = (last_ - item / 2) * tile_n;
        if (item % 2 == 0) {
            for_chunks(first, keys_, call_.k_strides, copy);
        } else {
            for_chunks(first, values_, call_.v_strides, copy);
            look_up(first - tile_n);
        }
    }

  private:
    static constexpr int rounds = tile_n / rows_a_round;

    __device__ bool exists(int row) const { return row >= begin_ && row < end_; }
    __device__ static int row_of(int first, int round) {
        return first + static_cast<int>(threadIdx.x) / 8 + round * rows_a_round;
    }
    __device__ void look_up(int first) {
#pragma unroll
        for (int round = 0; round < rounds; ++round) {
            const int row = row_of(first, round);
            pages_[round] = exists(row) ? static_cast<int>(call_.page_of(tile_.sequence, row)) : 0;
        }
    }
    template <class Copy>
    __device__ void for_chunks(int first, const CacheElement* tensor, const Strides& strides,
                               Copy copy) const {
#pragma unroll
        for (int round = 0; round < rounds; ++round) {
            const int row = row_of(first, round);
            const int64 offset = pages_[round] * strides.batch + row % page_size * strides.token;
            const CacheElement* from = tensor + (exists(row) ? offset : 0);
#pragma unroll
            for (int i = 0; i < geometry.chunk_rounds(); ++i) {
                if (threadIdx.x % 8 + 8 * i >= geometry.chunks()) continue;
                copy(round * geometry.chunk_rounds() + i,
                     (threadIdx.x / 8 + round * rows_a_round) * pitch + (threadIdx.x % 8 + 8 * i) * 16,
                     from + i * 64, exists(row));
            }
        }
    }

    const Call& call_;
    const Tile& tile_;
    const CacheElement* keys_;  ///< the head's first token of page 0, and this thread's chunk of it
    const CacheElement* values_;
    int begin_;
    int end_;
    int last_;
    int count_;
    int pages_[rounds];
};

using Items = Conditional<paged, PagedItems, TokenItems>::type;

__device__ inline uint32 next_slot(uint32 slot) {
    return slot == (stages - 1) * geometry.stage_bytes() ? 0 : slot + geometry.stage_bytes();
}

#if __CUDA_ARCH__ >= 800
/// A group of copies a stage. A turn to stage t waits for all but the stages - 2 groups behind it, then asks
/// for stage t + stages - 1, into the slot of t - 1: every thread that came to this turn has read it.
class AsyncFeeder {
  public:
    __device__ AsyncFeeder(uint32 ring, Items& items) : items_(items), ring_(ring) {}

    /// Copies that the caller has asked for before arrive with the first stage.
    __device__ void start() {
#pragma unroll
        for (int i = 0; i < stages - 1; ++i) copy(i * geometry.stage_bytes());
    }
    __device__ uint32 turn() {
        wait_for_copies<stages - 2>();
        __syncthreads();
        copy(before_);
        before_ = next_slot(before_);
        return ring_ + before_;
    }

  private:
    __device__ void copy(uint32 slot) {
        items_.for_chunks(next_++, [&](int, uint32 offset, const CacheElement* from, bool exists) {
            copy_chunk_async_or_zero(ring_ + slot + offset, from, exists);
        });
        commit_copies();
    }

    Items& items_;
    uint32 ring_;
    uint32 before_ = (stages - 1) * geometry.stage_bytes();  ///< slot of the stage that was read last
    int next_ = 0;
};
#endif

/// A chunk on its way: 8 elements, or as many codes.
struct HeldElements {
    uint4 word;

    __device__ void load(const Element* from, bool exists) {
        word = exists ? load_word<LoadHint::normal, 16>(from) : uint4{0, 0, 0, 0};
    }
    __device__ uint4 elements() const { return word; }
};
struct HeldCodes {
    uint2 word;

    __device__ void load(const fp8* from, bool exists) {
        word = exists ? load_word<LoadHint::normal, 8>(from) : uint2{0, 0};
    }
    __device__ uint4 elements() const {
        return {widen_pair<Element, 0, 1>(word.x), widen_pair<Element, 2, 3>(word.x),
                widen_pair<Element, 0, 1>(word.y), widen_pair<Element, 2, 3>(word.y)};
    }
};

/// While stage t is multiplied, stage t + 1 comes into registers, where these suffice; the turn to it stores
/// it, into the slot of stage t - 1 or an earlier one, which nobody reads since the turn to t.
class RegisterFeeder {
  public:
    __device__ RegisterFeeder(uint32 ring, Items& items) : items_(items), ring_(ring) {}

    /// Queries may be on their way by asynchronous copies.
    __device__ void start() {
        if constexpr (ahead) load();
#if __CUDA_ARCH__ >= 800
        commit_copies();
        wait_for_copies<0>();
#endif
    }
    __device__ uint32 turn() {
        const uint32 stage = ring_ + slot_;
        if constexpr (!ahead) load();
        items_.for_chunks(next_ - 1, [&](int i, uint32 offset, const CacheElement*, bool) {
            store_shared(stage + offset, held_[i].elements());
        });
        __syncthreads();
        if constexpr (ahead) load();
        slot_ = next_slot(slot_);
        return stage;
    }

  private:
    static constexpr bool ahead = geometry.loads_ahead();

    __device__ void load() {
        items_.for_chunks(next_++, [&](int i, uint32, const CacheElement* from, bool exists) {
            held_[i].load(from, exists);
        });
    }

    Items& items_;
    uint32 ring_;
    uint32 slot_ = 0;
    int next_ = 0;
    Conditional<fp8_cache, HeldCodes, HeldElements>::type held_[geometry.rounds() * geometry.chunk_rounds()];
};

#if __CUDA_ARCH__ >= 800
using Feeder = Conditional<fp8_cache, RegisterFeeder, AsyncFeeder>::type;
#else
using Feeder = RegisterFeeder;
#endif

/// The tile's queries; from where all threads may read them on depends on the way (start() or a barrier).
__device__ inline void copy_queries(uint32 to, const Call& call, const Tile& tile) {
    const Rows<Element> rows(call.query(tile.sequence, tile.head, 0), call.q_token_stride, 0,
                             tile.sequence.q_len);
    rows.for_chunks<tile_m>(tile.row, [&](int, uint32 offset, const Element* from, bool exists) {
#if __CUDA_ARCH__ >= 800
        copy_chunk_async_or_zero(to + offset, from, exists);
#else
        store_shared(to + offset, exists ? load_word<LoadHint::normal, 16>(from) : uint4{0, 0, 0, 0});
#endif
    });
}

/// The last 8 of padded_dim columns, of every row that shared memory has: copies leave them alone.
__device__ inline void clear_padding(uint32 base) {
    if constexpr (head_dim % 16 != 0) {
        for (int row = threadIdx.x; row < geometry.shared_bytes() / pitch; row += threads)
            store_shared(base + row * pitch + head_dim * 2, uint4{0, 0, 0, 0});
    }
}

}  // namespace hone::attention_prefill::warp_mma
