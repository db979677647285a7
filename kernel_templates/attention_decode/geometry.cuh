// What follows from a problem and a candidate's tunables: rows and lists, shared memory, the ring. Plain C++
// that both the host's plans and the kernels include, so that they cannot disagree.
#pragma once

namespace hone::attention_decode {

constexpr int round_up(int value, int step) { return (value + step - 1) / step * step; }
constexpr int blocks_of(int value, int size) { return (value + size - 1) / size; }

/// What all variants have.
struct Geometry {
    int group = 1;  ///< query heads that share a key-value head
    int kv_heads = 1;
    int head_dim = 1;
    int q_tokens = 1;
    int cache_bytes = 2;  ///< bytes of an element of the cache
    int rows_a_block = 8;
    int warps = 4;  ///< that compute
    int cluster = 1;
    bool side_by_side = false;

    /// Rows: query tokens times the heads of a group.
    constexpr int rows() const { return group * q_tokens; }
    constexpr int block_rows() const { return rows() < rows_a_block ? rows() : rows_a_block; }
    /// Blocks that share a key-value head of a sequence because it has more rows.
    constexpr int row_groups() const { return blocks_of(rows(), block_rows()); }
    /// Lists of rows that a sequence's tokens are read for; and lines of lists that slots are cut from.
    constexpr int lists() const { return kv_heads * row_groups(); }
    constexpr int lines() const { return side_by_side ? lists() : 1; }
    constexpr int line_lists() const { return lists() / lines(); }

    /// Items of four columns, of a row and of all of a block.
    constexpr int row_items() const { return blocks_of(head_dim, 4); }
    constexpr int items() const { return block_rows() * row_items(); }
    /// Items of one block of a cluster: those with item % cluster == rank.
    constexpr int inbox_items() const { return cluster > 1 ? blocks_of(items(), cluster) : 1; }
    /// Floats from one row of sums to the next in shared memory: rows 2 apart are 8 banks apart.
    constexpr int sums_pitch() const { return round_up(head_dim, 16) + 4; }
    /// The struct Shared of join.cuh.
    constexpr int join_bytes() const {
        const int sums = warps * block_rows() * sums_pitch() * 4 + warps * block_rows() * 8;
        return round_up(sums, 16) + round_up(cluster * inbox_items() * 24 + 8, 16) + 16;
    }
    /// Bytes of the workspace for one block: its two pieces, with a flag each.
    constexpr long long piece_bytes() const { return 2ll * (block_rows() * (row_items() * 4 + 2) * 4 + 8); }
};

/// The ring of variant ring.
struct Ring {
    Geometry geometry;
    int page_size = 0;  ///< 0: contiguous
    int unit = 32;      ///< tokens of a stage
    int stages = 4;
    int producers = 0;  ///< warps that copy with cp.async; 0: one warp and the copy engine

    constexpr bool copy_engine() const { return producers == 0; }
    constexpr int producer_warps() const { return copy_engine() ? 1 : producers; }
    constexpr int threads() const { return 32 * (geometry.warps + producer_warps()); }
    /// Columns of a panel: 128 bytes.
    constexpr int panel_columns() const { return 128 / geometry.cache_bytes; }
    constexpr int panels() const { return blocks_of(geometry.head_dim, panel_columns()); }
    constexpr int panel_bytes() const { return unit * 128; }
    constexpr int operand_bytes() const { return panels() * panel_bytes(); }
    constexpr int stage_bytes() const { return 2 * operand_bytes(); }
    /// Tokens of one copy of the copy engine.
    constexpr int box_tokens() const { return page_size == 0 || page_size > unit ? unit : page_size; }
    /// Boxes are whole swizzle patterns and stay on a page.
    constexpr bool has_boxes() const {
        return box_tokens() % 8 == 0 && unit % box_tokens() == 0 &&
               (page_size == 0 || page_size % box_tokens() == 0);
    }
    /// The struct Memory of ring/ring.cuh, which starts at a multiple of 1024.
    constexpr int memory_bytes() const {
        return round_up(stages * stage_bytes() + geometry.join_bytes() + 24 * stages, 1024);
    }
    constexpr int shared_bytes() const { return memory_bytes() + 1024; }
};

/// How a lane of variant registers reads a token's row.
struct LaneRows {
    int head_dim = 1;
    int cache_bytes = 2;

    /// Elements of an access to K, 16 bytes; four lanes share a span.
    constexpr int k_columns() const { return 16 / cache_bytes; }
    constexpr int k_span() const { return 4 * k_columns(); }
    constexpr int k_steps() const { return blocks_of(head_dim, k_span()); }
    /// Elements of an access to V; eight lanes share a chunk. Half accesses of fp8 where whole ones would
    /// leave lanes without columns.
    constexpr int v_columns() const { return cache_bytes == 1 && head_dim % 128 == 0 ? 16 : 8; }
    constexpr int v_words() const { return v_columns() * cache_bytes / 4; }
    constexpr int v_chunk() const { return 8 * v_columns(); }
    constexpr int v_chunks() const { return blocks_of(head_dim, v_chunk()); }
    /// Blocks of 16 columns of sums.
    constexpr int v_blocks() const { return v_chunks() * v_columns() / 2; }
    /// Words that a lane holds of 16 tokens.
    constexpr int held_words() const { return k_steps() * 2 * 4 + v_chunks() * 4 * v_words(); }
};

}  // namespace hone::attention_decode
