// Geometry of variant wgmma_tf32 (kernel.cu): what follows from its tunables and the head's size. Plain
// C++ that both the host's plan (plan.cpp) and the kernel include, so that they cannot disagree.
#pragma once

namespace hone::attention_prefill::tf32 {

/// Rows of one instruction, columns of its left operand, and columns of a panel, one row of a 128-byte
/// swizzle.
inline constexpr int block_rows = 64;
inline constexpr int slice_columns = 8;
inline constexpr int panel_columns = 32;
inline constexpr int row_bytes = 4 * panel_columns;
inline constexpr int panel_slices = panel_columns / slice_columns;
/// Shared memory and registers of a multiprocessor, and what each block loses: compute capability 9.0.
inline constexpr int shared_bytes_per_sm = 228 * 1024;
inline constexpr int reserved_bytes = 1024;
inline constexpr int registers_per_sm = 64 * 1024;

/// Byte offset of 16-byte chunk `chunk` (of 8) in row `row` of a swizzled panel.
constexpr unsigned panel_offset(int row, int chunk) {
    return static_cast<unsigned>(row * row_bytes + ((chunk ^ (row % 8)) << 4));
}

struct Geometry {
    int head_dim = 0;
    int consumers = 2;  ///< warpgroups of 64 queries each
    int tile_n = 0;     ///< keys of a stage
    int stages = 1;     ///< stages of keys, and as many of values

    constexpr int threads() const { return 128 * (1 + consumers); }
    constexpr int tile_m() const { return consumers * block_rows; }
    /// head_dim in whole slices: what is behind it is filled with zeros.
    constexpr int depth() const { return (head_dim + slice_columns - 1) / slice_columns * slice_columns; }

    // Panels of 32 columns: of queries and keys along the head, of values along the keys.
    constexpr int panels() const { return (depth() + panel_columns - 1) / panel_columns; }
    constexpr int query_panel_bytes() const { return block_rows * row_bytes; }
    constexpr int query_bytes() const { return panels() * query_panel_bytes(); }
    constexpr int key_panel_bytes() const { return tile_n * row_bytes; }
    constexpr int key_bytes() const { return panels() * key_panel_bytes(); }
    constexpr int value_panel_bytes() const { return depth() * row_bytes; }
    constexpr int value_bytes() const { return tile_n / panel_columns * value_panel_bytes(); }

    // Offsets from the aligned base. A stage of keys or values has two parts, what the tensor cores see and
    // what that leaves.
    constexpr int keys_at() const { return consumers * query_bytes(); }
    constexpr int values_at() const { return keys_at() + stages * 2 * key_bytes(); }
    constexpr int barriers_at() const { return values_at() + stages * 2 * value_bytes(); }
    /// What a launch asks for: the base is moved up to a multiple of `alignment`.
    constexpr int shared_bytes() const { return barriers_at() + 4 * stages * 8 + alignment; }

    /// Columns that the splitters share out among lanes, a power of two, and the rounds in which each of
    /// their threads takes eight words of a block of keys or of values.
    constexpr int lane_columns() const {
        int columns = panel_columns;
        while (columns < depth()) columns *= 2;
        return columns;
    }
    constexpr int rounds() const { return tile_n * lane_columns() / 1024; }

    // Registers of a thread. Roles exchange theirs, in steps of 8.
    constexpr int launch_registers() const { return registers_per_sm / threads() / 8 * 8; }
    constexpr bool moves_registers() const { return launch_registers() < 240; }
    /// The words of a block, and addresses.
    constexpr int splitter_registers() const { return rounds() * 8 + 40; }
    constexpr int consumer_registers() const {
        if (!moves_registers()) return 255;
        return (launch_registers() * (1 + consumers) - splitter_registers()) / consumers / 8 * 8;
    }
    /// Sums of the large products of scores: each over a part of the head, 64 columns at most.
    constexpr int score_parts() const { return depth() > 64 ? 2 : 1; }
    /// What a consumer's thread needs: results, and either sums of scores or weights and a block's results;
    /// left operands of three slices, addresses.
    constexpr int needed_registers() const {
        const int scoring = (score_parts() + 1) * tile_n / 2 + 4;
        const int weighing = depth() / 2 + tile_n / 2;
        return depth() / 2 + (scoring > weighing ? scoring : weighing) + 3 * 8 + 12;
    }

    static constexpr int alignment = 1024;
};

}  // namespace hone::attention_prefill::tf32
