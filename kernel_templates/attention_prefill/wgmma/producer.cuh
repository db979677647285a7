// The producer of variant wgmma (kernel.cu): one thread that keeps queries, keys and values coming; a warp
// where keys come in pages, whose lanes know a page each.
#pragma once

#include "attention_prefill/wgmma/schedule.cuh"
#include "device/mbarrier.cuh"
#include "device/shared_tile.cuh"
#include "device/tma_4d.cuh"

namespace hone::attention_prefill::warpgroup {

struct Maps {
    const TensorMap& query;
    const TensorMap& key;
    const TensorMap& value;
};

/// Keys of one tensor copy, and copies of a panel of a stage.
inline constexpr int box_rows = geometry.box_rows();
inline constexpr int boxes = geometry.boxes();

using Ring = RingPosition<stages>;
using QueryRing = RingPosition<query_stages>;

/// Addresses in shared memory, and the barriers: full ones first, then empty ones.
struct Layout {
    uint32 base;

    __device__ uint32 query(int warpgroup, int stage) const {
        return base + (warpgroup * query_stages + stage) * geometry.query_bytes();
    }
    __device__ uint32 key(int stage) const {
        return base + geometry.keys_at() + stage * geometry.stage_bytes();
    }
    __device__ uint32 value(int stage) const {
        return base + geometry.values_at() + stage * geometry.stage_bytes();
    }
    __device__ uint32 full_query(int warpgroup, int stage) const {
        return barrier(warpgroup * query_stages + stage);
    }
    __device__ uint32 full_key(int stage) const { return barrier(consumers * query_stages + stage); }
    __device__ uint32 full_value(int stage) const { return full_key(stages + stage); }
    /// The empty barrier that belongs to a full one.
    __device__ static uint32 empty(uint32 full) { return full + geometry.barriers() / 2 * 8; }

    /// The tile whose queries the stage holds, written before they arrive.
    __device__ uint32 tile(int warpgroup, int stage) const {
        return base + geometry.tiles_at() + (warpgroup * query_stages + stage) * Geometry::tile_bytes;
    }

    __device__ uint32 barrier(int number) const { return base + geometry.barriers_at() + number * 8; }
};

/// A tile on its way from the producer to a consumer; of the sequence only what the call does not say.
__device__ inline void store_tile(uint32 address, const Tile& tile) {
    store_shared(address, uint4{static_cast<uint32>(tile.slot), static_cast<uint32>(tile.row),
                                static_cast<uint32>(tile.first), static_cast<uint32>(tile.last)});
    if constexpr (lengths == Lengths::none) return;
    const Sequence& s = tile.sequence;
    store_shared(address + 16, uint4{static_cast<uint32>(s.q_len), static_cast<uint32>(s.kv_len),
                                     static_cast<uint32>(s.q_start), static_cast<uint32>(s.kv_start)});
}
/// By the warp's first lane alone, the one that will say that the tile was read; no branch, since products
/// are under way. The others' words are zeros.
__device__ inline uint4 load_by_first_lane(uint32 address) {
    uint4 word{0, 0, 0, 0};
    asm volatile(
        "{\n.reg .pred leads;\nsetp.eq.u32 leads, %5, 0;\n"
        "@leads ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];\n}"
        : "+r"(word.x), "+r"(word.y), "+r"(word.z), "+r"(word.w)
        : "r"(address), "r"(threadIdx.x % 32)
        : "memory");
    return word;
}
/// In registers that are the same in the whole warp.
__device__ inline Tile load_tile(uint32 address, const Call& call) {
    const auto uniform = [](uint32 word) { return static_cast<int>(__shfl_sync(0xffffffffu, word, 0)); };
    const uint4 place = load_by_first_lane(address);
    Tile tile{uniform(place.x), uniform(place.y), uniform(place.z), uniform(place.w), {}};
    if constexpr (lengths == Lengths::none) {
        tile.sequence = call.sequence(tile.slot / heads);
    } else {
        const uint4 words = load_by_first_lane(address + 16);
        tile.sequence = {tile.slot / heads, uniform(words.x), uniform(words.y), uniform(words.z),
                         uniform(words.w)};
    }
    return tile;
}

class Producer {
  public:
    __device__ Producer(Layout layout, const Maps& maps, const Call& call, const Sections& sections)
        : layout_(layout),
          maps_(maps),
          call_(call),
          order_(call, sections),
          deal_(call.workspace, order_.tiles()) {}

    /// In the order in which the consumers need them: values follow keys by one block, also from tile to
    /// tile.
    __device__ void run() {
        if constexpr (programmatic) {
            wait_for_predecessor();
            fence_async_proxy_global();
        }
        Tile tile = order_.tile(deal_.first());
        if (!packed) begin(tile);
        if (leads()) deal_.open();
        if (packed) {
            if (tile.empty()) tile = next(draw());
            if (tile.exists()) begin(tile);
        }
        while (tile.exists()) {
            const uint64 drawn = draw();
            int block = tile.last;
            if (block > tile.first) load_blocks(tile, block--);
            // The draw has come by now, and the next queries can go to level 2 while this tile lasts.
            const Tile after = next(drawn);
            if (after.exists()) prefetch_queries(after);
            while (block > tile.first) load_blocks(tile, block--);
            load_values(tile, tile.first);
            tile = after;
            if (tile.exists()) begin(tile);
        }
        announce_end();
    }

  private:
    /// Whether this thread copies, draws and arrives, alone or for its warp.
    __device__ static bool leads() { return !paged || threadIdx.x == 0; }

    __device__ uint64 draw() { return leads() ? deal_.draw() : 0; }
    /// The tile drawn, or if it is empty the next one that is not.
    __device__ Tile next(uint64 drawn) {
        while (true) {
            if constexpr (paged) drawn = __shfl_sync(0xffffffffu, drawn, 0);
            const int number = deal_.number(drawn);
            if (number < 0) return Tile::none();
            const Tile tile = order_.tile(number);
            if (!tile.empty()) return tile;
            drawn = draw();
        }
    }
    __device__ void begin(const Tile& tile) {
        load_queries(tile);
        load_keys(tile, tile.last);
    }
    __device__ void load_blocks(const Tile& tile, int block) {
        load_keys(tile, block - 1);
        load_values(tile, block);
    }

    /// Packed tensors are one long sequence to their maps.
    __device__ static Coordinates query_at(const Tile& tile, int panel, int row) {
        return {panel * panel_width, tile.sequence.q_start + tile.row + row, tile.head(),
                packed ? 0 : tile.sequence.index};
    }
    __device__ static Coordinates key_at(const Tile& tile, int panel, int block) {
        return {panel * panel_width, tile.sequence.kv_start + block * tile_n, tile.head() / group_size,
                packs_keys ? 0 : tile.sequence.index};
    }

    __device__ void prefetch_queries(const Tile& tile) {
        if (!leads()) return;
        for (int w = 0; w < consumers; ++w)
            for (int panel = 0; panel < panels; ++panel)
                prefetch_box(maps_.query, query_at(tile, panel, w * block_rows));
    }
    __device__ void load_queries(const Tile& tile) {
        for (int w = 0; w < consumers; ++w) {
            const uint32 full = layout_.full_query(w, queries_.stage);
            barrier_wait(Layout::empty(full), queries_.parity ^ 1);
            if (!leads()) continue;
            store_tile(layout_.tile(w, queries_.stage), tile);
            barrier_arrive_expecting(full, geometry.query_bytes());
            for (int panel = 0; panel < panels; ++panel)
                load_box<L2Hint::evict_first>(
                    layout_.query(w, queries_.stage) + panel * block_rows * row_bytes, maps_.query,
                    query_at(tile, panel, w * block_rows), full);
        }
        queries_.advance();
    }
    __device__ void announce_end() {
        for (int w = 0; w < consumers; ++w) {
            const uint32 full = layout_.full_query(w, queries_.stage);
            barrier_wait(Layout::empty(full), queries_.parity ^ 1);
            if (!leads()) continue;
            store_tile(layout_.tile(w, queries_.stage), Tile::none());
            barrier_arrive(full);
        }
    }
    __device__ void load_keys(const Tile& tile, int block) {
        load_stage(maps_.key, tile, block, layout_.key(keys_.stage), layout_.full_key(keys_.stage),
                   keys_.parity);
        keys_.advance();
    }
    __device__ void load_values(const Tile& tile, int block) {
        load_stage(maps_.value, tile, block, layout_.value(values_.stage), layout_.full_value(values_.stage),
                   values_.parity);
        values_.advance();
    }
    __device__ void load_stage(const TensorMap& map, const Tile& tile, int block, uint32 to, uint32 full,
                               uint32 parity) {
        if constexpr (paged) return load_pages(map, tile, block, to, full, parity);
        barrier_wait(Layout::empty(full), parity ^ 1);
        barrier_arrive_expecting(full, geometry.stage_bytes());
        for (int panel = 0; panel < panels; ++panel)
            load_box<L2Hint::normal>(to + panel * geometry.panel_bytes(), map, key_at(tile, panel, block),
                                     full);
    }

    /// The table is read before the wait for the stage, which mostly lasts longer.
    __device__ void load_pages(const TensorMap& map, const Tile& tile, int block, uint32 to, uint32 full,
                               uint32 parity) {
        const int own_page =
            look_up(tile.sequence, block * tile_n + static_cast<int>(threadIdx.x) * box_rows);
        barrier_wait(Layout::empty(full), parity ^ 1);
        if (leads()) barrier_arrive_expecting(full, geometry.stage_bytes());
        const int token = block * tile_n % page_size;  // 0 unless pages are longer than stages
        for (int box = 0; box < boxes; ++box) {
            const int page = __shfl_sync(0xffffffffu, own_page, box);
            if (!leads()) continue;
            for (int panel = 0; panel < panels; ++panel)
                load_box<L2Hint::normal>(
                    to + panel * geometry.panel_bytes() + box * box_rows * row_bytes, map,
                    Coordinates{panel * panel_width, token, tile.head() / group_size, page}, full);
        }
    }
    /// The page of the box that begins at key `first`. A box without a key that some query of the sequence
    /// sees has none: its rows are zeros, as those of pages that the pool lacks, and its bytes count.
    __device__ int look_up(const Sequence& sequence, int first) const {
        const bool is_seen = first < sequence.kv_len && first + box_rows > sequence.first_key();
        if (!is_seen || threadIdx.x >= boxes) return -1;
        return call_.page_table[sequence.index * call_.page_table_stride + first / page_size];
    }

    Layout layout_;
    const Maps& maps_;
    const Call& call_;
    Order order_;
    Deal deal_;
    QueryRing queries_;
    Ring keys_;
    Ring values_;
};

}  // namespace hone::attention_prefill::warpgroup
