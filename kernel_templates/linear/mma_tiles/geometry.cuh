// Geometry of variant mma_tiles (product.cuh): what follows from its tunables. Plain C++ that both the
// host's plan (plan.cpp) and the kernel include, so that they cannot disagree.
#pragma once

namespace hone::linear::tiles {

struct Geometry {
    int tile_m = 0;  ///< tokens of a block
    int tile_n = 0;  ///< rows of the weight of a block; gated: half gate rows, half up rows
    int tile_k = 0;  ///< columns of both that a stage holds
    int warps_m = 1;
    int warps_n = 1;
    int stages = 2;
    int blocks_per_sm = 1;  ///< that its registers leave room for
    bool gated = false;

    constexpr int warps() const { return warps_m * warps_n; }
    constexpr int threads() const { return 32 * warps(); }
    constexpr int result_columns() const { return gated ? tile_n / 2 : tile_n; }

    // The share of one warp.
    constexpr int warp_rows() const { return tile_m / warps_m; }
    constexpr int warp_columns() const { return tile_n / warps_n; }
    constexpr int warp_results() const { return result_columns() / warps_n; }
    constexpr int row_blocks() const { return warp_rows() / 16; }
    constexpr int column_blocks() const { return warp_columns() / 8; }
    /// Sums of a thread, and its words of both operands for one step of 16 columns.
    constexpr int sums() const { return 4 * row_blocks() * column_blocks(); }
    constexpr int fragment_words() const { return 4 * row_blocks() + 2 * column_blocks(); }

    // A thread copies 16 bytes a round, always the same columns, `rows_a_round` rows on.
    constexpr int chunks() const { return tile_k / 8; }
    constexpr int rows_a_round() const { return threads() / chunks(); }
    constexpr int x_rounds() const { return tile_m / rows_a_round(); }
    constexpr int weight_rounds() const { return result_columns() / rows_a_round(); }  ///< a weight
    constexpr int rounds() const { return (tile_m + tile_n) / rows_a_round(); }

    /// Two stages are filled through registers, more by asynchronous copies.
    constexpr bool asynchronous() const { return stages > 2; }

    constexpr int row_bytes() const { return 2 * tile_k; }
    constexpr int weight_at() const { return tile_m * row_bytes(); }  ///< in a stage
    constexpr int stage_bytes() const { return (tile_m + tile_n) * row_bytes(); }
    constexpr int ring_bytes() const { return stages * stage_bytes(); }
    /// Results on their way out take the ring's place.
    constexpr int staging_bytes() const { return tile_m * result_columns() * 2; }
    constexpr int shared_bytes() const {
        return ring_bytes() > staging_bytes() ? ring_bytes() : staging_bytes();
    }

    /// Registers that a thread may take, and those that it cannot do without. Where there are more it also
    /// holds the next step's words.
    constexpr int register_budget() const {
        const int share = 65536 / (threads() * blocks_per_sm);
        return share < 255 ? share : 255;
    }
    constexpr int registers() const {
        return sums() + fragment_words() + (asynchronous() ? 0 : 4 * rounds()) + 40;
    }
    constexpr bool reads_ahead() const { return registers() + fragment_words() <= register_budget(); }

    static constexpr int alignment = 128;
};

}  // namespace hone::linear::tiles
