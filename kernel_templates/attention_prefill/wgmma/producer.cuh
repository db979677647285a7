// The producer of variant wgmma (kernel.cu), which keeps queries, keys and values coming: one thread, or all
// of its warpgroup where keys and values come row by row, or a few warps where in many copies. These go the
// same way together, each counting the block's tiles for itself, and the first of them copies queries.
#pragma once

#include "attention_prefill/wgmma/codes.cuh"

namespace hone::attention_prefill::warpgroup {

class Producer {
  public:
    __device__ Producer(Layout layout, const Maps& maps, const Call& call, const Sections& sections)
        : layout_(layout),
          maps_(maps),
          call_(call),
          order_(call, sections),
          deal_(deal_of(layout, call, order_.tiles())) {}
    /// Where pages are looked up: the first tile stands in shared memory, in the next one's place.
    __device__ Producer(Layout layout, const Maps& maps, const Call& call, const Order& order)
        : layout_(layout),
          maps_(maps),
          call_(call),
          order_(order),
          deal_(deal_of(layout, call, order_.tiles())) {}

    /// In the order in which the consumers need them: values follow keys by one block, also from tile to
    /// tile.
    __device__ void run() {
        if constexpr (programmatic) {
            if constexpr (!looks_up) wait_at_start(call_);
            fence_async_proxy_global();
        }
        if constexpr (looks_up) {
            load_from_pages(stages_);
        } else {
            load();
        }
        announce_end();
    }

  private:
    using Rows = Conditional<fp8_cache, WidenedRows, CopiedRows>::type;
    using Stages = Conditional<keys_stay_codes, CodesAndRows, Conditional<by_rows, Rows, Boxes>::type>::type;

    using Tiles = Conditional<may_be_beside, DealBeside, Deal<dynamic>>::type;

    static constexpr bool looks_up = geometry.looks_up();
    /// Tiles begin in one place where consumers, who hold most registers, would spill else: the compiler
    /// (NVRTC 13.0) then keeps more of what a warp has in common in registers of its own. Elsewhere the first
    /// copies would only come 0.1 us later.
    static constexpr bool begins_in_loop =
        dynamic && late_maxima && query_in_registers && geometry.held_registers(true) >= 192;

    __device__ static Tiles deal_of(const Layout& layout, const Call& call, int tiles) {
        if constexpr (may_be_beside) {
            return {call, tiles, layout.drawn()};
        } else {
            return {call.workspace, tiles};
        }
    }

    /// Boxes of pages: looking up takes registers. Each step stands in one place, and the next tile in shared
    /// memory meanwhile.
    template <class Boxes>
    __device__ void load_from_pages(Boxes& stages) {
        if (packed) deal_.open();
        bool is_open = packed;
        Tile tile = take_next();
        while (tile.exists()) {
            // The first one may be: of what is found further on, none is.
            const bool is_empty = tile.empty();
            stages.begin(feed(), tile);
            if (!is_empty) load_queries(tile);
            if (!is_open) deal_.open();
            is_open = true;
            const uint64 drawn = deal_.draw();
            stages.load_tile(feed(), tile, is_empty, [&] {
                const Tile after = find(deal_.number(drawn));
                if (after.exists()) prefetch_queries(after);
                if (threadIdx.x % 32 == 0) store_tile(layout_.next_tile(), after);
            });
            tile = take_next();
        }
    }
    /// What the warp's first lane has left for all of it; the place is free again then.
    __device__ Tile take_next() {
        if constexpr (many_produce) __syncwarp();
        const Tile tile = load_uniform_tile(layout_.next_tile(), call_);
        if constexpr (many_produce) __syncwarp();
        return tile;
    }
    __device__ void load() {
        Tile tile = order_.tile(deal_.first());
        if (!packed && !begins_in_loop) begin(tile);
        deal_.open();
        if (packed) {
            if (tile.empty()) tile = next(deal_.draw());
            if (tile.exists() && !begins_in_loop) begin(tile);
        }
        while (tile.exists()) {
            if constexpr (begins_in_loop) begin(tile);
            const uint64 drawn = deal_.draw();
            int block = tile.last;
            if (block > tile.first) stages_.load_blocks(feed(), tile, block--, Tile::none());
            // The draw has come by now, and the next queries can go to level 2 while this tile lasts.
            const Tile after = next(drawn);
            if (after.exists()) prefetch_queries(after);
            stages_.follow(feed(), after);
            while (block > tile.first) stages_.load_blocks(feed(), tile, block--, after);
            stages_.load_last_values(feed(), tile, after);
            tile = after;
            if (!begins_in_loop && tile.exists()) begin(tile);
        }
    }
    __device__ void begin(const Tile& tile) {
        stages_.begin(feed(), tile);
        load_queries(tile);
        stages_.load_first_keys(feed(), tile);
    }

    /// Whether this thread copies queries, alone or for the others.
    __device__ static bool leads() { return !many_produce || threadIdx.x == 0; }

    /// The tile drawn, or if it is empty the next one that is not.
    __device__ Tile next(uint64 drawn) {
        while (true) {
            const int number = deal_.number(drawn);
            if (number < 0) return Tile::none();
            const Tile tile = order_.tile(number);
            if (!tile.empty()) return tile;
            drawn = deal_.draw();
        }
    }
    /// The same of a number.
    __device__ Tile find(int number) {
        while (true) {
            if (number < 0) return Tile::none();
            const Tile tile = order_.tile(number);
            if (!tile.empty()) return tile;
            number = deal_.number(deal_.draw());
        }
    }
    __device__ Feed feed() { return {layout_, maps_, call_, keys_, values_}; }

    /// Packed tensors are one long sequence to their maps.
    __device__ static Coordinates query_at(const Tile& tile, int panel, int row) {
        return {panel * panel_width, tile.sequence.q_start + tile.row + row, tile.head(),
                packed ? 0 : tile.sequence.index};
    }
    __device__ void prefetch_queries(const Tile& tile) {
        if (!leads()) return;
        for (int w = 0; w < consumers; ++w)
            for (int panel = 0; panel < panels; ++panel)
                prefetch_box(maps_.query, query_at(tile, panel, w * block_rows));
    }
    /// By the leading thread alone. Others that waited with it, and have nothing of a stage of queries to
    /// bring, could fall two phases behind its barrier, which look like none, and wait for ever: a consumer
    /// gives queries back before any key has come where they go to its registers.
    __device__ void load_queries(const Tile& tile) {
        if (leads()) {
            for (int w = 0; w < consumers; ++w) {
                const uint32 full = await_query_stage(w);
                store_tile(layout_.tile(w, queries_.stage), tile);
                barrier_arrive_expecting(full, geometry.query_bytes());
                for (int panel = 0; panel < panels; ++panel)
                    load_box<L2Hint::evict_first>(
                        layout_.query(w, queries_.stage) + panel * block_rows * row_bytes, maps_.query,
                        query_at(tile, panel, w * block_rows), full);
            }
        }
        queries_.advance();
    }
    __device__ void announce_end() {
        if (!leads()) return;
        for (int w = 0; w < consumers; ++w) {
            const uint32 full = await_query_stage(w);
            store_tile(layout_.tile(w, queries_.stage), Tile::none());
            barrier_arrive(full);
        }
    }
    /// Waits until the stage is free, and returns its full barrier.
    __device__ uint32 await_query_stage(int warpgroup) const {
        const uint32 full = layout_.full_query(warpgroup, queries_.stage);
        barrier_wait(Layout::empty(full), queries_.parity ^ 1);
        return full;
    }

    Layout layout_;
    const Maps& maps_;
    const Call& call_;
    Order order_;
    Tiles deal_;
    QueryRing queries_;
    Ring keys_;
    Ring values_;
    Stages stages_;
};

}  // namespace hone::attention_prefill::warpgroup
