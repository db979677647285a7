// Geometry of variant wgmma (kernel.cu): what follows from its tunables and the head's size, and the order of
// tiles. Plain C++ that both the host's plan and the kernel include, so that they cannot disagree.
#pragma once

namespace hone::attention_prefill::warpgroup {

/// Rows of one instruction, columns of a panel (one row of a 128-byte swizzle), and its pitch in bytes.
inline constexpr int block_rows = 64;
inline constexpr int panel_width = 64;
inline constexpr int row_bytes = 128;
/// Shared memory of a multiprocessor, what each block loses of it, and registers: compute capability 9.0.
inline constexpr int shared_bytes_per_sm = 228 * 1024;
inline constexpr int reserved_bytes = 1024;
inline constexpr int registers_per_sm = 64 * 1024;

struct Geometry {
    int head_dim = 0;
    int consumers = 2;  ///< warpgroups of 64 queries each
    int tile_n = 0;     ///< keys of a stage
    int stages = 2;     ///< stages of keys, and as many of values
    int query_stages = 1;
    int blocks_per_sm = 1;
    int page_size = 0;    ///< keys of a page; 0: they do not come in pages
    int cache_bytes = 2;  ///< bytes of an element of keys and values; 1: codes of fp8
    bool bf16_queries = false;

    /// Warpgroups that bring keys and values: two where codes are widened, which keeps four warps too busy.
    constexpr int producers() const { return widens() ? 2 : 1; }
    constexpr int threads() const { return 128 * (producers() + consumers); }
    constexpr int tile_m() const { return consumers * block_rows; }
    constexpr int panels() const { return (head_dim + panel_width - 1) / panel_width; }

    constexpr int query_bytes() const { return panels() * block_rows * row_bytes; }
    constexpr int panel_bytes() const { return tile_n * row_bytes; }
    constexpr int stage_bytes() const { return panels() * panel_bytes(); }

    /// Codes, which are widened on their way: by all threads of the producer.
    constexpr bool widens() const { return cache_bytes == 1; }
    /// Keys are multiplied as the codes that they are, with queries that have become two codes each
    /// (queries.cuh), which hold the 8 bits of bf16. Panels are whole rows of 128 codes then.
    constexpr bool keys_stay_codes() const {
        return widens() && bf16_queries && head_dim % row_bytes == 0 && has_boxes();
    }
    constexpr int key_stage_bytes() const { return keys_stay_codes() ? stage_bytes() / 2 : stage_bytes(); }
    /// Keys of one tensor copy, and the copies of a stage's panel: a copy stays on a page.
    constexpr int box_rows() const { return page_size == 0 || page_size > tile_n ? tile_n : page_size; }
    constexpr int boxes() const { return tile_n / box_rows(); }
    /// Copies fill stages, are whole swizzle patterns of 8 rows, and do not reach from one page into the
    /// next.
    constexpr bool has_boxes() const {
        return tile_n % box_rows() == 0 && box_rows() % 8 == 0 &&
               (page_size == 0 || page_size % box_rows() == 0);
    }
    /// Whether threads copy keys and values row by row, and not tensor copies.
    constexpr bool by_rows() const { return widens() || !has_boxes(); }
    /// Whether whole warps produce: all of their warpgroup where threads copy, some where one alone would
    /// take too long to issue the copies.
    constexpr bool many_produce() const { return by_rows() || boxes() > 1; }
    /// Warps that issue boxes. Each has some of every stage: a warp without could fall two phases behind a
    /// barrier, which look like none, and wait for ever.
    constexpr int box_warps() const { return boxes() < 4 ? boxes() : 4; }
    constexpr int producer_threads() const {
        if (by_rows()) return 128 * producers();
        return many_produce() ? 32 * box_warps() : 1;
    }
    /// Chunks of 16 codes of a block of keys, or of values, that a thread brings: one of each panel and pass
    /// of all threads over the rows, of which four share one.
    constexpr int code_chunks() const {
        const int rows = producer_threads() / 4;
        return widens() ? (tile_n + rows - 1) / rows * panels() : 0;
    }

    // Offsets from the aligned base.
    constexpr int keys_at() const { return consumers * query_stages * query_bytes(); }
    constexpr int values_at() const { return keys_at() + stages * key_stage_bytes(); }
    constexpr int barriers_at() const { return values_at() + stages * stage_bytes(); }
    constexpr int barriers() const { return 2 * (consumers * query_stages + 2 * stages); }
    /// The tiles whose queries stand in the stages.
    constexpr int tiles_at() const { return barriers_at() + barriers() * 8; }
    /// The number of a tile that one of many producers has drawn for all: two places in turn.
    constexpr int drawn_at() const { return tiles_at() + consumers * query_stages * tile_bytes; }
    constexpr int drawn_bytes() const { return looks_up() && many_produce() ? 16 : 0; }
    /// Whether tensor copies look up pages.
    constexpr bool looks_up() const { return page_size > 0 && !by_rows(); }
    /// The next tile, which each warp that looks pages up leaves here while the present one lasts.
    constexpr int next_tiles_at() const { return drawn_at() + drawn_bytes(); }
    constexpr int next_tiles_bytes() const { return looks_up() ? box_warps() * tile_bytes : 0; }
    /// What a launch asks for: the base is moved up to a multiple of `alignment`.
    constexpr int shared_bytes() const { return next_tiles_at() + next_tiles_bytes() + alignment; }

    /// Registers a thread at the start, and after the roles have shared them out; in steps of 8.
    constexpr int launch_registers() const { return registers_per_sm / (threads() * blocks_per_sm) / 8 * 8; }
    constexpr bool moves_registers() const { return launch_registers() < 240; }
    constexpr int producer_registers() const {
        if (!by_rows()) return looks_up() ? 56 : consumers > 2 ? 32 : 40;
        // Four a chunk of codes that are widened. Beside a lone consumer there are more to spare.
        const int codes = 32 + (keys_stay_codes() ? 4 : 8) * code_chunks() +
                          (consumers == 1 && blocks_per_sm == 1 ? 16 : 0);
        return !widens() || codes < 56 ? 56 : codes;
    }
    constexpr int consumer_registers() const {
        const int all = launch_registers() * (producers() + consumers);
        const int each = (all - producers() * producer_registers()) / consumers / 8 * 8;
        return each < 240 ? each : 240;
    }
    /// Registers for what a consumer's thread holds throughout: scores, rounded weights, sums, and the
    /// queries where they do not stay in shared memory.
    constexpr int held_registers(bool query_in_registers) const {
        const int queries = query_in_registers ? (head_dim + 15) / 16 * 4 : 0;
        return tile_n / 2 + tile_n / 4 + head_dim / 2 + queries;
    }

    static constexpr int tile_bytes = 32;
    static constexpr int alignment = 1024;
};

/// A tile by its head, counted over all sequences (slot), and by its place among the head's tiles.
struct Place {
    int slot;
    int row;
};

/// The order of tiles, as the host chooses it; of packed queries over pages, the rows are those of all
/// sequences (Line), and the host's number of them is half of the most that there may be. Full attention and
/// windows: a head's tiles follow each other, so that its keys and values stay in level 2. Other causal tiles
/// differ in length: heads form sections (of `heads`, the last one with what remains), and the longest tiles
/// of a section come first.
struct Sections {
    int rows = 1;   ///< tiles of a head
    int heads = 1;  ///< heads in a section
    int count = 1;  ///< number of sections

    constexpr Place by_heads(int index) const { return {index / rows, index % rows}; }
    constexpr Place by_sections(int index, int slots) const {
        const int of_section = heads * rows;
        const int number = index / of_section < count ? index / of_section : count - 1;
        const int first = number * heads;
        const int size = number == count - 1 ? slots - first : heads;
        const int rest = index - first * rows;
        return {first + rest % size, rows - 1 - rest / size};
    }
};

/// The first of `count` numbers for which `holds`, as it does for all after it; or `count`.
template <class Holds>
constexpr int first_where(int count, Holds holds) {
    int first = 0;
    while (first < count) {
        const int middle = (first + count) / 2;
        if (holds(middle)) {
            count = middle;
        } else {
            first = middle + 1;
        }
    }
    return first;
}

/// The tiles of packed sequences of any lengths, on one line of rows: if every sequence had as many as the
/// longest, nearly all would be empty. A sequence has a place for each of its tiles, and at most one more,
/// which is empty; whose a row is, a search tells. Any starts have rows from 0 on.
struct Line {
    const int* starts = nullptr;  ///< of the sequences' queries, and the end
    int tile_m = 64;
    int first = 0;      ///< the first sequence that has a place
    int sequences = 0;  ///< up to the last one that has

    /// Where the sequence begins on the line.
    constexpr int first_row(int sequence) const { return places_before(sequence) - places_before(first); }
    constexpr int rows() const { return first_row(sequences) < 0 ? 0 : first_row(sequences); }
    constexpr int sequence_at(int row) const {
        return first + first_where(sequences - 1 - first,
                                   [this, row](int i) { return first_row(first + i + 1) > row; });
    }

  private:
    constexpr int places_before(int sequence) const {
        const auto tokens = static_cast<unsigned>(starts[sequence]);
        const auto step = static_cast<unsigned>(tile_m);
        return static_cast<int>((tokens + static_cast<unsigned>(sequence) * (step - 1)) / step);
    }
};
/// Of `count` sequences, which place(i) counts from either end, how many come before the first with at least
/// so many queries: eight starts are read at a time.
template <class Place>
constexpr int before_first_with(const int* starts, int count, int least_queries, Place place) {
    constexpr int together = 8;
    for (int before = 0; before < count; before += together) {
        unsigned enough = 0;
        for (int i = 0; i < together; ++i) {
            const int at = place(before + i < count ? before + i : count - 1);
            const auto queries = static_cast<unsigned>(starts[at + 1]) - static_cast<unsigned>(starts[at]);
            enough |= (static_cast<int>(queries) >= least_queries ? 1u : 0u) << i;
        }
        for (int i = 0; i < together; ++i)
            if ((enough >> i & 1u) != 0) return before + i;
    }
    return count;
}
/// Sequences without queries at the end of a call, as a replayed graph may have them, have no place; nor have
/// those with fewer than least_queries in front of all others or behind them, where engines put single
/// tokens.
constexpr Line line_of(const int* starts, int batch, int tile_m, int least_queries) {
    const int tokens = starts[batch];
    const int some = first_where(batch, [starts, tokens](int i) { return starts[i] >= tokens; });
    const int first = before_first_with(starts, some, least_queries, [](int i) { return i; });
    const int behind =
        before_first_with(starts, some - first, least_queries, [some](int i) { return some - 1 - i; });
    return {starts, tile_m, first, some - behind};
}

}  // namespace hone::attention_prefill::warpgroup
