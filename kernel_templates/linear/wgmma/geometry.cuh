// Geometry of products by tensor copies and warpgroups (product.cuh): what follows from a variant's operands
// and tunables. Plain C++ that both the host's plan (plan.cpp) and the kernel include, so that they cannot
// disagree.
#pragma once

namespace hone::linear::gemm {

/// Rows of one instruction.
inline constexpr int block_rows = 64;
/// Shared memory of a multiprocessor, and what each block loses of it: compute capability 9.0.
inline constexpr int shared_bytes_per_sm = 228 * 1024;
inline constexpr int reserved_bytes = 1024;
inline constexpr int max_stages = 12;

/// What a stage of the ring holds. The default: 64 elements of 16 bits of each row, a swizzled row of 128
/// bytes.
struct Operands {
    int columns = 64;      ///< columns of `in`
    int left_pitch = 128;  ///< bytes of a row
    int right_pitch = 128;
    int left_extra = 0;   ///< bytes beside each left row: scales
    int k_unit = 1;       ///< steps that the consumers take at once
    int stage_steps = 1;  ///< stages that consumers take together: the ring has a multiple of them
};

struct Geometry {
    int tile_m = 0;  ///< rows of the left operand, a block
    int tile_n = 0;  ///< rows of the right one: n of the instruction
    int consumers = 1;
    int blocks_per_sm = 1;
    int cluster_k = 1;
    bool gated = false;
    bool swapped = false;
    bool ping_pong = false;
    bool tail_pairs = false;  ///< tiles of the last round are shared by the two blocks of a cluster
    int staged = 0;
    Operands operands{};

    constexpr int threads() const { return 128 * (1 + consumers); }
    /// Warpgroups that share a tile.
    constexpr int sharers() const { return ping_pong ? 1 : consumers; }
    /// Whole blocks of 64 rows that a warpgroup multiplies.
    constexpr int row_blocks() const { return tile_m / block_rows / sharers(); }
    /// Two warpgroups that share an odd number of blocks of the weight halve the columns of the middle one.
    constexpr bool halves() const { return swapped && sharers() == 2 && tile_m / block_rows % 2 == 1; }
    /// Sums that a thread holds.
    constexpr int sums() const { return row_blocks() * tile_n / 2 + (halves() ? tile_n / 4 : 0); }
    /// The tile's block that is a warpgroup's b-th, with halves() behind its whole ones the shared one; and
    /// the first of the columns that it has of it.
    constexpr int block(int warpgroup, int b) const {
        if (!halves()) return (ping_pong ? 0 : warpgroup * row_blocks()) + b;
        return b < row_blocks() ? warpgroup * (row_blocks() + 1) + b : row_blocks();
    }
    constexpr int first_column(int warpgroup, int b) const {
        return halves() && b == row_blocks() ? warpgroup * (tile_n / 2) : 0;
    }

    /// A gated tile is half gate rows, half up rows.
    constexpr bool gated_rows() const { return gated && swapped; }
    constexpr bool gated_columns() const { return gated && !swapped; }
    constexpr int result_rows() const { return gated_rows() ? tile_m / 2 : tile_m; }
    constexpr int result_columns() const { return gated_columns() ? tile_n / 2 : tile_n; }
    constexpr int result_blocks() const { return gated_rows() ? row_blocks() / 2 : row_blocks(); }

    /// Rows of one copy.
    constexpr int weight_box() const { return (swapped ? tile_m : tile_n) / (gated ? 2 : 1); }
    constexpr int x_box() const { return swapped ? tile_n : tile_m; }

    constexpr int left_bytes() const { return tile_m * operands.left_pitch; }
    constexpr int right_bytes() const { return tile_n * operands.right_pitch; }
    constexpr int extra_bytes() const { return tile_m * operands.left_extra; }
    constexpr int stage_bytes() const { return left_bytes() + right_bytes() + extra_bytes(); }

    /// Staged results: panels of `panel_width` results in 64 rows, as wide as a swizzled row can be; swapped,
    /// of 64 results a token. With staged = 2 few results at a time leave more room to the ring: 8 KiB,
    /// and swapped half of a tile's tokens, or 8 of them more, which both halves have. With staged = 3
    /// panels of 4 KiB at most take turns.
    constexpr bool takes_turns() const { return staged == 3; }
    constexpr int panel_width() const {
        if (swapped || (result_columns() % 64 == 0 && !takes_turns())) return 64;
        return result_columns() % 32 == 0 ? 32 : 16;
    }
    constexpr int panels_across() const {
        if (!swapped) return result_columns() / panel_width();
        if (takes_turns()) return (tile_n + 23) / 24;
        return staged == 2 && tile_n > 8 ? 2 : 1;
    }
    /// Swapped: of a panel.
    constexpr int panel_tokens() const { return (tile_n / 8 + panels_across() - 1) / panels_across() * 8; }
    /// First column of results of the i-th panel in a row of them; swapped, its first token: the last panels
    /// may have tokens of the one before, too.
    constexpr int panel_start(int i) const {
        if (!swapped) return i * panel_width();
        const int last = tile_n - panel_tokens();
        if (!takes_turns()) return i * last;
        return i * panel_tokens() < last ? i * panel_tokens() : last;
    }
    /// With halves(): panels of a warpgroup's half of the shared block, and the first column of the i-th,
    /// from the half's own on.
    constexpr int half_panels() const {
        return halves() ? (tile_n / 2 + panel_tokens() - 1) / panel_tokens() : 0;
    }
    constexpr int half_start(int i) const {
        const int last = tile_n / 2 - panel_tokens();
        return i * panel_tokens() < last ? i * panel_tokens() : last;
    }
    constexpr int panels() const { return result_blocks() * panels_across() + half_panels(); }
    constexpr int panel_bytes() const { return (swapped ? panel_tokens() : block_rows) * panel_width() * 2; }
    /// Panels that a warpgroup has place for, and fills before the copy engine takes them: all, or what
    /// 16 KiB (8 KiB) hold. In turns the engine takes each, and there are two places, or up to four where
    /// that costs the ring no stage.
    constexpr int store_panels() const {
        if (staged == 0 || cluster_k > 1) return 0;
        if (takes_turns()) {
            const int ring = (room() - consumers * 2 * panel_bytes()) / stage_bytes() * stage_bytes();
            const int places = (room() - ring) / (consumers * panel_bytes());
            const int most = panels() < 4 ? panels() : 4;
            return places < most ? places : most;
        }
        if (staged == 2) return panel_bytes() < 8 * 1024 ? 8 * 1024 / panel_bytes() : 1;
        if (panels() * panel_bytes() <= 24 * 1024) return panels();
        return panel_bytes() < 16 * 1024 ? 16 * 1024 / panel_bytes() : 1;
    }
    constexpr int staging_bytes() const { return store_panels() * panel_bytes(); }

    /// Bytes for the ring's stages and staged results.
    constexpr int room() const {
        return shared_bytes_per_sm / blocks_per_sm - reserved_bytes - alignment - 2 * max_stages * 8 -
               (operands.left_extra > 0 ? alignment : 0);
    }
    /// As many as fit.
    constexpr int stages() const {
        const int fit = (room() - consumers * staging_bytes() - inbox_bytes()) / stage_bytes();
        return (fit < max_stages ? fit : max_stages) / operands.stage_steps * operands.stage_steps;
    }

    // Offsets from the aligned base.
    constexpr int left_at() const { return 0; }
    constexpr int right_at() const { return stages() * left_bytes(); }
    constexpr int extra_at() const { return stages() * (left_bytes() + right_bytes()); }
    constexpr int staging_at() const {
        return (stages() * stage_bytes() + alignment - 1) / alignment * alignment;
    }
    constexpr int inbox_at() const { return staging_at() + consumers * staging_bytes(); }
    constexpr int barriers_at() const { return inbox_at() + inbox_bytes(); }
    constexpr int barrier_count() const {
        return 2 * stages() + (joins_early() || tail_pairs ? 2 : has_inbox() ? 1 : 0);
    }
    /// What a launch asks for: the base is moved up to a multiple of `alignment`.
    constexpr int shared_bytes() const { return barriers_at() + barrier_count() * 8 + alignment; }

    /// Fragments (64 rows x 8 columns of results) of a warpgroup's tile, how many of them one block of a
    /// cluster adds up, and the bytes in which all blocks' parts of them meet.
    constexpr int fragments() const { return result_blocks() * (result_columns() / 8); }
    constexpr int share() const { return (fragments() + cluster_k - 1) / cluster_k; }
    constexpr int fragment_bytes() const { return 128 * consumers * 16; }
    constexpr int exchange_bytes() const { return cluster_k * share() * (gated ? 2 : 1) * fragment_bytes(); }

    /// cluster_k with staged = 2: the other blocks' sums come asynchronously into memory of their own, so
    /// that nobody waits until the rings are free.
    constexpr bool has_inbox() const { return cluster_k > 1 && staged == 2; }
    /// Whether the blocks of a cluster meet once, at the start: all have opened the barriers at which the
    /// bytes that come from others are counted.
    constexpr bool meets_early() const { return joins_early() || has_inbox() || tail_pairs; }
    /// Blocks that have parts of one sum there, or with tail_pairs; how many fragments each of them adds up
    /// at most; and the bytes that come to one for them, and to the block of a rank.
    constexpr int joined_blocks() const { return tail_pairs ? 2 : cluster_k; }
    constexpr int joined_share() const { return (fragments() + joined_blocks() - 1) / joined_blocks(); }
    constexpr int joined_bytes(int fragments) const {
        return (joined_blocks() - 1) * fragments * (gated ? 2 : 1) * fragment_bytes();
    }
    constexpr int inbox_bytes() const { return has_inbox() ? joined_bytes(joined_share()) : 0; }
    constexpr int awaited_bytes(int rank) const {
        const int rest = fragments() - rank * joined_share();
        return joined_bytes(rest < 0 ? 0 : rest < joined_share() ? rest : joined_share());
    }

    /// cluster_k with staged = 1: each of two blocks adds up the sums of one of its two warpgroups. The
    /// other one multiplies its last steps first, and its sums are on their way to the other block while they
    /// are multiplied here for the sums that stay. They come into stages whose steps are over by then, and
    /// results leave through the stages of the last steps.
    constexpr bool joins_early() const { return cluster_k > 1 && staged == 1; }
    /// Fragments of a warpgroup that a stage has room for, in the places of its left rows, then of the right
    /// ones; and stages that all of them take.
    static constexpr int sent_bytes() { return 128 * 16; }
    constexpr int sent_left() const { return left_bytes() / sent_bytes(); }
    constexpr int sent_to_stage() const { return sent_left() + right_bytes() / sent_bytes(); }
    constexpr int sent_stages() const { return (fragments() + sent_to_stage() - 1) / sent_to_stage(); }
    /// As many as leave stages for them.
    constexpr int last_steps() const { return stages() - sent_stages() < 4 ? stages() - sent_stages() : 4; }
    /// Whether all of this is possible.
    constexpr bool can_join_early() const {
        return cluster_k == 2 && staged == 1 && consumers == 2 && sharers() == 2 && !gated && !halves() &&
               operands.left_extra == 0 && operands.k_unit == 1 && last_steps() >= 2 &&
               row_blocks() <= last_steps();
    }

    /// tail_split, for each block: the part of a tile's sums that it leaves, and the flags of the warpgroups
    /// that share a tile.
    constexpr int partial_bytes() const { return tile_m * tile_n * 4; }
    constexpr int workspace_bytes() const { return partial_bytes() + sharers() * 8; }

    static constexpr int alignment = 1024;
};

}  // namespace hone::linear::gemm
