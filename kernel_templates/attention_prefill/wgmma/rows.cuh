// How variant wgmma (kernel.cu) fills stages where no tensor copy can: by all threads of the producer,
// which copy 16 bytes each. Keys in pages smaller than a stage come by cp.async straight to their place in
// the stage. Codes of fp8 come into registers, a whole block ahead; then the thread widens them, exactly, on
// their way to the stage. Through shared memory they would take its port, which operands keep busy, a third
// time and a fourth.
//
// Row r of a pass belongs to thread r * row_threads and those next to it; a warp has warp_rows of each pass,
// whose entries of the page table its lanes hold, read a block ahead. Rows that no query of the sequence
// sees, and those of pages that the pool lacks, are zeros and not read: consumers need not clear them.
//
// Every thread arrives at a stage's full barrier: by cp.async, when its copies have landed, and then
// consumers show them to the tensor cores; or behind its own stores and the fence that shows them.
#pragma once

#include "attention_prefill/wgmma/layout.cuh"
#include "device/stream.cuh"
#include "device/widen_fp8.cuh"

namespace hone::attention_prefill::warpgroup {

/// Elements of 16 bytes of memory, and threads that copy a row of a panel.
inline constexpr int chunk_elements = 16 / static_cast<int>(sizeof(CacheElement));
inline constexpr int row_threads = panel_width / chunk_elements;
/// Rows that all threads copy together, and how often they do for a block; rows of a warp.
inline constexpr int row_producers = 128 * geometry.producers();
inline constexpr int pass_rows = row_producers / row_threads;
inline constexpr int passes = (tile_n + pass_rows - 1) / pass_rows;
inline constexpr int warp_rows = 32 / row_threads;

/// The pages of a block's rows; without pages nothing.
class RowPages {
  public:
    /// Lane l knows row number l, l + 32, ... of its warp.
    __device__ void look_up(const Call& call, const Tile& tile, int block) {
        if constexpr (!paged) return;
        const Sequence& sequence = tile.sequence;
        const int* const entries = call.page_table + sequence.index * call.page_table_stride;
#pragma unroll
        for (int w = 0; w < words; ++w) {
            const int number = 32 * w + static_cast<int>(threadIdx.x) % 32;
            const int row = number / warp_rows * pass_rows + static_cast<int>(threadIdx.x) / 32 * warp_rows +
                            number % warp_rows;
            const int token = block * tile_n + row;
            pages_[w] = -1;
            if (row < tile_n && token >= sequence.first_key() && token < sequence.kv_len)
                pages_[w] = entries[token / page_size];
        }
    }
    /// The page of the thread's row; -1: none. By all lanes.
    __device__ int of_pass(int pass) const {
        const int first = pass * warp_rows;
        return __shfl_sync(0xffffffffu, pages_[first / 32],
                           first % 32 + static_cast<int>(threadIdx.x) % 32 / row_threads);
    }

  private:
    static constexpr int words = paged ? (passes * warp_rows + 31) / 32 : 1;
    int pages_[words];
};

/// One of the two tensors.
struct RowTensor {
    const CacheElement* first;
    const Strides& strides;
};

/// Calls visit(pass, chunk in memory, whether it exists) for this thread's rows of a block. The last pass may
/// reach behind the block, to rows that do not exist: no branch goes around them, since behind its end loads
/// would be waited for.
template <class Visit>
__device__ inline void for_rows(const Call& call, const RowTensor& tensor, const Tile& tile, int block,
                                const RowPages& pages, Visit visit) {
    const Sequence& sequence = tile.sequence;
    const int own_row = static_cast<int>(threadIdx.x) / row_threads;
    const Strides& strides = tensor.strides;
    const CacheElement* base = tensor.first + tile.head() / group_size * strides.head +
                               static_cast<int>(threadIdx.x) % row_threads * chunk_elements;
    if constexpr (!paged)
        base += packs_keys ? sequence.kv_start * strides.token : sequence.index * strides.batch;
#pragma unroll
    for (int pass = 0; pass < passes; ++pass) {
        const int row = pass * pass_rows + own_row;
        const int token = block * tile_n + row;
        bool exists;
        int64 offset;
        if constexpr (paged) {
            const int page = pages.of_pass(pass);
            exists = page >= 0 && page < call.pool_pages;
            offset = page * strides.batch + token % page_size * strides.token;
        } else {
            exists = token >= sequence.first_key() && token < sequence.kv_len;
            offset = token * strides.token;
        }
        if (tile_n % pass_rows != 0) exists &= row < tile_n;
        visit(pass, exists ? base + offset : base, exists);
    }
}

/// The thread's row of a pass is none of the block's.
__device__ inline bool behind_block(int pass) {
    return tile_n % pass_rows != 0 &&
           pass * pass_rows + static_cast<int>(threadIdx.x) / row_threads >= tile_n;
}

/// Panel `panel` of a row has the thread's columns.
__device__ inline bool has_columns(int panel) {
    return panel * panel_width + static_cast<int>(threadIdx.x) % row_threads * chunk_elements < head_dim;
}

/// Rows of 16-bit elements.
class CopiedRows {
  public:
    __device__ void begin(const Feed& feed, const Tile& tile) {
        if (!knows_) far_.look_up(feed.call, tile, tile.last);
        knows_ = false;
    }
    __device__ void follow(const Feed&, const Tile&) {}
    __device__ void load_first_keys(const Feed& feed, const Tile& tile) {
        load_keys(feed, tile, tile.last);
        near_ = far_;
        if (tile.last > tile.first) far_.look_up(feed.call, tile, tile.last - 1);
    }
    __device__ void load_blocks(const Feed& feed, const Tile& tile, int block, const Tile& after) {
        load_keys(feed, tile, block - 1);
        load_values(feed, tile, block);
        near_ = far_;
        if (block - 2 >= tile.first) {
            far_.look_up(feed.call, tile, block - 2);
        } else if (after.exists()) {
            far_.look_up(feed.call, after, after.last);
            knows_ = true;
        }
    }
    __device__ void load_last_values(const Feed& feed, const Tile& tile, const Tile&) {
        load_values(feed, tile, tile.first);
    }

  private:
    __device__ void load_keys(const Feed& feed, const Tile& tile, int block) {
        load(feed, feed.layout.full_key(feed.keys.stage), feed.keys.parity, feed.layout.key(feed.keys.stage),
             {feed.call.k, feed.call.k_strides}, tile, block, far_);
        feed.keys.advance();
    }
    __device__ void load_values(const Feed& feed, const Tile& tile, int block) {
        load(feed, feed.layout.full_value(feed.values.stage), feed.values.parity,
             feed.layout.value(feed.values.stage), {feed.call.v, feed.call.v_strides}, tile, block, near_);
        feed.values.advance();
    }
    __device__ void load(const Feed& feed, uint32 full, uint32 parity, uint32 stage, const RowTensor& tensor,
                         const Tile& tile, int block, const RowPages& pages) {
        const uint32 to = stage + swizzled_offset<panel_width>(static_cast<int>(threadIdx.x) / row_threads,
                                                               static_cast<int>(threadIdx.x) % row_threads);
        barrier_wait(Layout::empty(full), parity ^ 1);
        for_rows(feed.call, tensor, tile, block, pages, [&](int pass, const CacheElement* from, bool exists) {
            if (behind_block(pass)) return;
#pragma unroll
            for (int panel = 0; panel < panels; ++panel)
                copy_chunk_async_or_zero(to + panel * geometry.panel_bytes() + pass * pass_rows * row_bytes,
                                         from + panel * panel_width, exists && has_columns(panel));
        });
        barrier_arrive_after_copies(full);
    }

    RowPages near_;       ///< pages of the next values
    RowPages far_;        ///< pages of the next keys
    bool knows_ = false;  ///< these are the next tile's
};

enum class Side { keys, values };

/// Codes of the block of keys, or of values, that was asked for last, on their way through a thread's
/// registers.
template <Side side>
class WidenedStage {
  public:
    __device__ void ask(const Feed& feed, const Tile& tile, int block, const RowPages& pages) {
        const RowTensor tensor = side == Side::keys ? RowTensor{feed.call.k, feed.call.k_strides}
                                                    : RowTensor{feed.call.v, feed.call.v_strides};
        for_rows(feed.call, tensor, tile, block, pages, [&](int pass, const CacheElement* from, bool exists) {
#pragma unroll
            for (int panel = 0; panel < panels; ++panel) {
                uint4& own = codes_[pass * panels + panel];
                own = uint4{};
                if (exists && has_columns(panel))
                    own = load_stream<StreamHint::line>(from + panel * panel_width);
            }
        });
    }
    __device__ void widen(const Feed& feed) {
        const Layout& layout = feed.layout;
        Ring& ring = side == Side::keys ? feed.keys : feed.values;
        const uint32 full = side == Side::keys ? layout.full_key(ring.stage) : layout.full_value(ring.stage);
        const uint32 stage = side == Side::keys ? layout.key(ring.stage) : layout.value(ring.stage);
        const int own_row = static_cast<int>(threadIdx.x) / row_threads;
        const uint32 to =
            stage + swizzled_offset<panel_width>(own_row, static_cast<int>(threadIdx.x) % row_threads * 2);
        barrier_wait(Layout::empty(full), ring.parity ^ 1);
#pragma unroll
        for (int pass = 0; pass < passes; ++pass) {
            if (behind_block(pass)) continue;
#pragma unroll
            for (int panel = 0; panel < panels; ++panel) {
                const uint4& word = codes_[pass * panels + panel];
                const uint32 at = to + panel * geometry.panel_bytes() + pass * pass_rows * row_bytes;
                store_shared(at, uint4{low(word.x), high(word.x), low(word.y), high(word.y)});
                store_shared(at ^ 16, uint4{low(word.z), high(word.z), low(word.w), high(word.w)});
            }
        }
        fence_async_proxy();
        barrier_arrive(full);
        ring.advance();
    }

  private:
    __device__ static uint32 low(uint32 codes) { return widen_pair<Operand, 0, 1>(codes); }
    __device__ static uint32 high(uint32 codes) { return widen_pair<Operand, 2, 3>(codes); }

    uint4 codes_[passes * panels];  ///< of each panel 16 a pass
};

/// Rows of codes. Loads are a block ahead of what is widened: keys of block b - 2 are asked for when those of
/// b - 1 have been widened, values alike, and at a tile's end the next tile's, where that is known by then.
class WidenedRows {
  public:
    __device__ void begin(const Feed& feed, const Tile& tile) {
        if (!ahead_) {
            far_.look_up(feed.call, tile, tile.last);
            keys_.ask(feed, tile, tile.last, far_);
            values_.ask(feed, tile, tile.last, far_);
        }
        ahead_ = false;
        look_ahead(feed, tile, tile.last - 1);
    }
    /// The next tile is known while this one lasts.
    __device__ void follow(const Feed& feed, const Tile& after) {
        if (after.exists()) next_.look_up(feed.call, after, after.last);
    }
    __device__ void load_first_keys(const Feed& feed, const Tile& tile) {
        keys_.widen(feed);
        if (tile.last > tile.first) keys_.ask(feed, tile, tile.last - 1, far_);
        near_ = far_;
        look_ahead(feed, tile, tile.last - 2);
    }
    __device__ void load_blocks(const Feed& feed, const Tile& tile, int block, const Tile& after) {
        keys_.widen(feed);
        if (block - 2 >= tile.first) {
            keys_.ask(feed, tile, block - 2, far_);
        } else if (after.exists()) {
            keys_.ask(feed, after, after.last, next_);
            ahead_ = true;
        }
        values_.widen(feed);
        values_.ask(feed, tile, block - 1, near_);
        near_ = far_;
        look_ahead(feed, tile, block - 3);
    }
    __device__ void load_last_values(const Feed& feed, const Tile&, const Tile& after) {
        values_.widen(feed);
        if (ahead_) values_.ask(feed, after, after.last, next_);
    }

  private:
    __device__ void look_ahead(const Feed& feed, const Tile& tile, int block) {
        if (block >= tile.first) far_.look_up(feed.call, tile, block);
    }

    WidenedStage<Side::keys> keys_;
    WidenedStage<Side::values> values_;
    RowPages near_;       ///< pages of the next values to be asked for
    RowPages far_;        ///< pages of the next keys
    RowPages next_;       ///< pages of the next tile's last block
    bool ahead_ = false;  ///< the next tile's last keys have been asked for
};

}  // namespace hone::attention_prefill::warpgroup
