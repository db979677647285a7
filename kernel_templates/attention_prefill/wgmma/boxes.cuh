// How variant wgmma (kernel.cu) fills stages by tensor copies. Keys and values of any order, and those in
// pages that whole stages fill: a copy a panel, by one thread. Smaller pages: a copy each and panel, by the
// first lanes of up to four warps, which take the pages of a stage in turn, because one warp issues no more
// than a copy in about 70 cycles. Every lane knows the page of a copy, read a block ahead.
#pragma once

#include "attention_prefill/wgmma/layout.cuh"

namespace hone::attention_prefill::warpgroup {

/// Keys of one tensor copy, and copies of a panel of a stage.
inline constexpr int box_rows = geometry.box_rows();
inline constexpr int boxes = geometry.boxes();
inline constexpr int box_warps = geometry.box_warps();

/// The page of a copy of a block. One without a key that some query of the sequence sees has none: its rows
/// are zeros, as those of pages that the pool lacks, and its bytes count.
__device__ inline int page_of_box(const Feed& feed, const Tile& tile, int block, int box) {
    const Sequence& sequence = tile.sequence;
    const int first = block * tile_n + box * box_rows;
    if (box >= boxes || first >= sequence.kv_len || first + box_rows <= sequence.first_key()) return -1;
    return feed.call.page_table[sequence.index * feed.call.page_table_stride + first / page_size];
}
/// Where a copy of keys or values begins; packed tensors are one long sequence to their maps.
__device__ inline Coordinates box_at(const Tile& tile, int column, int block, int box, int page) {
    const int token = block * tile_n + box * box_rows;
    const int head = tile.head() / group_size;
    if constexpr (paged) return {column, token % page_size, head, page};
    return {column, tile.sequence.kv_start + token, head, packs_keys ? 0 : tile.sequence.index};
}

class Boxes {
  public:
    /// The entry of the page table is read before the wait for a stage of queries.
    __device__ void begin(const Feed& feed, const Tile& tile) {
        if constexpr (paged) key_page_ = look_up(feed, tile, tile.last);
    }
    __device__ void follow(const Feed&, const Tile&) {}
    __device__ void load_first_keys(const Feed& feed, const Tile& tile) { load_keys(feed, tile, tile.last); }
    __device__ void load_blocks(const Feed& feed, const Tile& tile, int block, const Tile&) {
        load_keys(feed, tile, block - 1);
        load_values(feed, tile, block);
    }
    __device__ void load_last_values(const Feed& feed, const Tile& tile, const Tile&) {
        load_values(feed, tile, tile.first);
    }
    /// Keys and values of pages, each step in one place, since compilers take it as often as it stands
    /// somewhere; `find_next` finds the next tile meanwhile. An empty tile has none.
    template <class FindNext>
    __device__ void load_tile(const Feed& feed, const Tile& tile, bool is_empty, FindNext find_next) {
#pragma unroll 1
        for (int block = tile.last; block >= tile.first - 1; --block) {
            if (!is_empty && block >= tile.first) load_keys(feed, tile, block);
            if (!is_empty && block < tile.last) load_values(feed, tile, block + 1);
            turn_pages(feed, tile, block - 1);
            if (block == tile.last - 1) find_next();
        }
    }

  private:
    __device__ void load_keys(const Feed& feed, const Tile& tile, int block) {
        load_stage(feed, feed.maps.key, tile, block, feed.layout.key(feed.keys.stage),
                   feed.layout.full_key(feed.keys.stage), feed.keys.parity, key_page_);
        feed.keys.advance();
    }
    __device__ void load_values(const Feed& feed, const Tile& tile, int block) {
        load_stage(feed, feed.maps.value, tile, block, feed.layout.value(feed.values.stage),
                   feed.layout.full_value(feed.values.stage), feed.values.parity, value_page_);
        feed.values.advance();
    }
    __device__ void load_stage(const Feed& feed, const TensorMap& map, const Tile& tile, int block, uint32 to,
                               uint32 full, uint32 parity, int page) {
        barrier_wait(Layout::empty(full), parity ^ 1);
        if (!many_produce || threadIdx.x == 0) barrier_arrive_expecting(full, geometry.stage_bytes());
        if constexpr (boxes > 1) {
            load_pages(map, tile, to, full, page);
        } else {
            for (int panel = 0; panel < panels; ++panel)
                load_box<L2Hint::normal>(to + panel * geometry.panel_bytes(), map,
                                         box_at(tile, panel * panel_width, block, 0, page), full);
        }
    }
    /// Bytes may arrive before the thread that expects them does: the phase ends with its arrival.
    __device__ static void load_pages(const TensorMap& map, const Tile& tile, uint32 to, uint32 full,
                                      int own_page) {
        const int warp = __shfl_sync(0xffffffffu, threadIdx.x / 32, 0);
#pragma unroll
        for (int i = 0; i < (boxes + box_warps - 1) / box_warps; ++i) {
            const int box = box_warps * i + warp;
            const int page = __shfl_sync(0xffffffffu, own_page, box);
            if (threadIdx.x % 32 != 0 || box >= boxes) continue;
#pragma unroll
            for (int panel = 0; panel < panels; ++panel)
                load_box<L2Hint::normal>(
                    to + panel * geometry.panel_bytes() + box * box_rows * row_bytes, map,
                    Coordinates{panel * panel_width, 0, tile.head() / group_size, page}, full);
        }
    }
    /// The next values are those of the keys just loaded, and the next keys those of `block`, if there are
    /// any.
    __device__ void turn_pages(const Feed& feed, const Tile& tile, int block) {
        value_page_ = key_page_;
        key_page_ = look_up(feed, tile, max(block, tile.first));
    }
    __device__ static int look_up(const Feed& feed, const Tile& tile, int block) {
        return page_of_box(feed, tile, block, boxes > 1 ? static_cast<int>(threadIdx.x) % 32 : 0);
    }

    int key_page_ = -1;    ///< the page of the next keys, read while those before them are waited for
    int value_page_ = -1;  ///< that of the next values
};

}  // namespace hone::attention_prefill::warpgroup
