// How variant wgmma (kernel.cu) fills stages by tensor copies, one a panel, issued by one thread: keys and
// values of any order, and those in pages that whole stages fill.
#pragma once

#include "attention_prefill/wgmma/layout.cuh"

namespace hone::attention_prefill::warpgroup {

class Boxes {
  public:
    __device__ Boxes(Layout layout, const Maps& maps, const Call& call)
        : layout_(layout), maps_(maps), call_(call) {}

    /// The entry of the page table is read before the wait for a stage of queries.
    __device__ void begin(const Tile& tile) {
        if constexpr (paged) key_page_ = look_up(tile, tile.last);
    }
    __device__ void follow(const Tile&) {}
    __device__ void load_first_keys(const Tile& tile) { load_keys(tile, tile.last); }
    __device__ void load_blocks(const Tile& tile, int block, const Tile&) {
        load_keys(tile, block - 1);
        load_values(tile, block);
        value_page_ = key_page_;
        if constexpr (paged) key_page_ = look_up(tile, max(block - 2, tile.first));
    }
    __device__ void load_last_values(const Tile& tile, const Tile&) { load_values(tile, tile.first); }

  private:
    /// Packed tensors are one long sequence to their maps.
    __device__ static Coordinates key_at(const Tile& tile, int panel, int block) {
        return {panel * panel_width, tile.sequence.kv_start + block * tile_n, tile.head() / group_size,
                packs_keys ? 0 : tile.sequence.index};
    }
    __device__ void load_keys(const Tile& tile, int block) {
        load_stage(maps_.key, tile, block, layout_.key(keys_.stage), layout_.full_key(keys_.stage),
                   keys_.parity, key_page_);
        keys_.advance();
        if (paged && block == tile.last) {
            value_page_ = key_page_;
            key_page_ = look_up(tile, max(block - 1, tile.first));
        }
    }
    __device__ void load_values(const Tile& tile, int block) {
        load_stage(maps_.value, tile, block, layout_.value(values_.stage), layout_.full_value(values_.stage),
                   values_.parity, value_page_);
        values_.advance();
    }
    __device__ void load_stage(const TensorMap& map, const Tile& tile, int block, uint32 to, uint32 full,
                               uint32 parity, int page) {
        barrier_wait(Layout::empty(full), parity ^ 1);
        barrier_arrive_expecting(full, geometry.stage_bytes());
        for (int panel = 0; panel < panels; ++panel) {
            Coordinates from = key_at(tile, panel, block);
            if constexpr (paged) {
                from.token = block * tile_n % page_size;
                from.batch = page;
            }
            load_box<L2Hint::normal>(to + panel * geometry.panel_bytes(), map, from, full);
        }
    }
    /// The page of a block. One without a key that some query of the sequence sees has none: its rows are
    /// zeros, as those of pages that the pool lacks, and its bytes count.
    __device__ int look_up(const Tile& tile, int block) const {
        const Sequence& sequence = tile.sequence;
        const int first = block * tile_n;
        if (first >= sequence.kv_len || first + tile_n <= sequence.first_key()) return -1;
        return call_.page_table[sequence.index * call_.page_table_stride + first / page_size];
    }

    Layout layout_;
    const Maps& maps_;
    const Call& call_;
    Ring keys_;
    Ring values_;
    int key_page_ = -1;    ///< the page of the next keys, read while those before them are waited for
    int value_page_ = -1;  ///< that of the next values
};

}  // namespace hone::attention_prefill::warpgroup
