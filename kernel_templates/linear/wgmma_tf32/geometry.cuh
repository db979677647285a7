// Geometry of variant wgmma_tf32 (product.cuh): what follows from its tunables. Plain C++ that both the
// host's plan (plan.cpp) and the kernel include, so that they cannot disagree.
#pragma once

namespace hone::linear::tf32 {

/// Columns of both operands that a stage holds, one row of a 128-byte swizzle; rows and columns of one
/// instruction's left operand.
inline constexpr int stage_columns = 32;
inline constexpr int row_bytes = 4 * stage_columns;
inline constexpr int block_rows = 64;
inline constexpr int slice_columns = 8;
inline constexpr int slices = stage_columns / slice_columns;
/// Shared memory of a multiprocessor, and what each block loses of it: compute capability 9.0.
inline constexpr int shared_bytes_per_sm = 228 * 1024;
inline constexpr int reserved_bytes = 1024;
inline constexpr int max_stages = 12;
/// Warps of warpgroup 0 that split the right operand; the first one asks for the copies.
inline constexpr int splitter_warps = 3;

struct Geometry {
    int tile_m = 0;  ///< rows of the left operand, a block
    int tile_n = 0;  ///< rows of the right one: n of the instruction
    int consumers = 1;
    int blocks_per_sm = 1;
    int cluster_k = 1;
    bool gated = false;
    bool swapped = false;

    constexpr int threads() const { return 128 * (1 + consumers); }
    /// Blocks of 64 rows that a warpgroup multiplies.
    constexpr int row_blocks() const { return tile_m / block_rows / consumers; }

    // Registers of a thread. Roles exchange theirs, in steps of 8, where one block has the multiprocessor.
    constexpr bool moves_registers() const { return blocks_per_sm == 1 && consumers > 1; }
    static constexpr int producer_registers() { return 40; }
    constexpr int consumer_registers() const {
        if (!moves_registers()) return blocks_per_sm == 1 ? 255 : 65536 / (threads() * blocks_per_sm);
        return consumers == 2 ? 232 : 152;
    }
    /// What a consumer's thread needs: sums, those of one stage and row block, two slices of the left operand
    /// split in two, one as it comes, and addresses.
    constexpr int needed_registers() const { return (row_blocks() + 1) * tile_n / 2 + 2 * 8 + 4 + 20; }

    /// A gated tile is half gate rows, half up rows.
    constexpr bool gated_rows() const { return gated && swapped; }
    constexpr bool gated_columns() const { return gated && !swapped; }
    constexpr int result_rows() const { return gated_rows() ? tile_m / 2 : tile_m; }
    constexpr int result_columns() const { return gated_columns() ? tile_n / 2 : tile_n; }
    constexpr int result_blocks() const { return gated_rows() ? row_blocks() / 2 : row_blocks(); }

    /// Rows of one copy.
    constexpr int weight_box() const { return (swapped ? tile_m : tile_n) / (gated ? 2 : 1); }
    constexpr int x_box() const { return swapped ? tile_n : tile_m; }

    /// A stage: the left operand, the right one, and what is lost when the right one is cut to tf32.
    constexpr int left_bytes() const { return tile_m * row_bytes; }
    constexpr int right_bytes() const { return tile_n * row_bytes; }
    constexpr int copied_bytes() const { return left_bytes() + right_bytes(); }
    constexpr int stage_bytes() const { return left_bytes() + 2 * right_bytes(); }

    /// As many as fit.
    constexpr int stages() const {
        const int room =
            shared_bytes_per_sm / blocks_per_sm - reserved_bytes - alignment - barriers * max_stages * 8;
        const int fit = room / stage_bytes();
        return fit < max_stages ? fit : max_stages;
    }

    // Offsets from the aligned base, and within a stage.
    constexpr int right_at() const { return left_bytes(); }
    constexpr int rest_at() const { return left_bytes() + right_bytes(); }
    constexpr int barriers_at() const { return stages() * stage_bytes(); }
    /// What a launch asks for: the base is moved up to a multiple of `alignment`.
    constexpr int shared_bytes() const { return barriers_at() + barriers * stages() * 8 + alignment; }

    /// Fragments (64 rows x 8 columns of results) of a warpgroup's tile, how many of them one block of a
    /// cluster adds up, and the bytes in which all blocks' parts of them meet.
    constexpr int fragments() const { return result_blocks() * (result_columns() / 8); }
    constexpr int share() const { return (fragments() + cluster_k - 1) / cluster_k; }
    constexpr int fragment_bytes() const { return 128 * consumers * 16; }
    constexpr int exchange_bytes() const { return cluster_k * share() * (gated ? 2 : 1) * fragment_bytes(); }

    static constexpr int alignment = 1024;
    static constexpr int barriers = 3;  ///< a stage
};

}  // namespace hone::linear::tf32
