// How variant wgmma (kernel.cu) fills stages where keys are multiplied as codes of fp8: tensor copies bring
// them, as boxes.cuh brings numbers, and all threads of the producer widen values (rows.cuh).
#pragma once

#include "attention_prefill/wgmma/boxes.cuh"
#include "attention_prefill/wgmma/rows.cuh"

namespace hone::attention_prefill::warpgroup {

/// Panels of a stage of keys.
inline constexpr int code_panels = geometry.key_stage_bytes() / geometry.panel_bytes();

/// Keys are copied by the first lanes of the producer's warps in turn; every lane knows the page of a copy,
/// read a block ahead. Values are asked for a block ahead of what is widened, their pages two blocks.
class CodesAndRows {
  public:
    __device__ void begin(const Feed& feed, const Tile& tile) {
        look_up_keys(feed, tile, tile.last);
        if (!ahead_) {
            pages_.look_up(feed.call, tile, tile.last);
            values_.ask(feed, tile, tile.last, pages_);
        }
        ahead_ = false;
        if (tile.last > tile.first) pages_.look_up(feed.call, tile, tile.last - 1);
    }
    /// The next tile is known while this one lasts.
    __device__ void follow(const Feed& feed, const Tile& after) {
        if (after.exists()) next_.look_up(feed.call, after, after.last);
    }
    __device__ void load_first_keys(const Feed& feed, const Tile& tile) {
        load_keys(feed, tile, tile.last);
        look_up_keys(feed, tile, max(tile.last - 1, tile.first));
    }
    __device__ void load_blocks(const Feed& feed, const Tile& tile, int block, const Tile&) {
        load_keys(feed, tile, block - 1);
        look_up_keys(feed, tile, max(block - 2, tile.first));
        values_.widen(feed);
        values_.ask(feed, tile, block - 1, pages_);
        if (block - 2 >= tile.first) pages_.look_up(feed.call, tile, block - 2);
    }
    __device__ void load_last_values(const Feed& feed, const Tile&, const Tile& after) {
        values_.widen(feed);
        if (!after.exists()) return;
        values_.ask(feed, after, after.last, next_);
        ahead_ = true;
    }

  private:
    __device__ void look_up_keys(const Feed& feed, const Tile& tile, int block) {
        if constexpr (paged) key_page_ = page_of_box(feed, tile, block, static_cast<int>(threadIdx.x) % 32);
    }
    /// By the warps that have copies of each stage. One without that waited with them could fall two phases
    /// behind, which look like none: a tile's first keys are multiplied and given back before its values
    /// come.
    __device__ void load_keys(const Feed& feed, const Tile& tile, int block) {
        const int warp = __shfl_sync(0xffffffffu, threadIdx.x / 32, 0);
        if (warp < boxes) copy_keys(feed, tile, block, warp);
        __syncwarp();
        feed.keys.advance();
    }
    /// Bytes may arrive before the thread that expects them does: the phase ends with its arrival.
    __device__ void copy_keys(const Feed& feed, const Tile& tile, int block, int warp) const {
        constexpr int warps = row_producers / 32;
        const uint32 full = feed.layout.full_key(feed.keys.stage);
        const uint32 to = feed.layout.key(feed.keys.stage);
        barrier_wait(Layout::empty(full), feed.keys.parity ^ 1);
        if (threadIdx.x == 0) barrier_arrive_expecting(full, geometry.key_stage_bytes());
#pragma unroll
        for (int i = 0; i < (boxes + warps - 1) / warps; ++i) {
            const int box = warps * i + warp;
            const int page = __shfl_sync(0xffffffffu, key_page_, box % 32);
            if (threadIdx.x % 32 != 0 || box >= boxes) continue;
#pragma unroll
            for (int panel = 0; panel < code_panels; ++panel)
                load_box<L2Hint::normal>(to + panel * geometry.panel_bytes() + box * box_rows * row_bytes,
                                         feed.maps.key, box_at(tile, panel * row_bytes, block, box, page),
                                         full);
        }
    }

    WidenedStage<Side::values> values_;
    RowPages pages_;      ///< pages of the next values to be asked for
    RowPages next_;       ///< pages of the next tile's last block
    int key_page_ = -1;   ///< the page of the next keys, of the lane's copy
    bool ahead_ = false;  ///< the next tile's last values have been asked for
};

}  // namespace hone::attention_prefill::warpgroup
