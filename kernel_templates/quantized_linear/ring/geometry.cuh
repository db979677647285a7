// Variant ring in numbers: how a config cuts the products up, and what a block keeps where in shared memory.
// Plain C++, for the host (plan.h) and the kernel (block.cuh) alike.
//
// A tile is `rows` results of all tokens; a gated one has as many rows of the gate, and behind them those of
// up. A cluster of cluster_k blocks shares tiles: `in` is cut into units of 64 columns, or of a whole group,
// and each block takes a slice of neighbouring ones, the same of every tile. A stage holds some units of the
// slice for all rows of the tile. x of the slice stays in shared memory for all tiles, or passes through the
// ring with the weights (`x_streams`). A block's compute warps are row_warps x k_warps: each has warp_rows
// rows and every k_warps-th unit of a stage.
//
// Sums are exchanged in fragments, 16 rows x 8 tokens; fragment f of a tile's results belongs to block
// f % cluster_k of the cluster, at place f / cluster_k of its inbox.
#pragma once

#include "quantized_linear/layout.cuh"

namespace hone::quantized_linear {

struct RingGeometry {
    int bits;   ///< bits of a code
    int group;  ///< columns that share a scale inside of the ring; 0: scales are not in the ring
    bool zeros;
    int products;
    int in;
    int tokens;  ///< tokens of a block, a multiple of 8
    int rows;
    int warp_rows;
    int k_warps;
    int stage_columns;
    int stages;
    int cluster_k;
    bool x_streams;
    bool factors = false;  ///< tokens' sums are multiplied, as those of products that share a norm are

    /// Warps that finish: with the producer, one for each quarter of a multiprocessor.
    static constexpr int finishers = 3;

    constexpr int tile_blocks() const { return products * rows / block_rows; }
    constexpr int row_warps() const { return products * rows / warp_rows; }
    constexpr int compute_warps() const { return row_warps() * k_warps; }
    /// Those that compute, those that finish, and the producer.
    constexpr int threads() const { return 32 * (compute_warps() + finishers + 1); }

    // Columns.
    constexpr int unit_columns() const { return group > block_columns ? group : block_columns; }
    constexpr int unit_blocks() const { return unit_columns() / block_columns; }
    constexpr int units() const { return (in + unit_columns() - 1) / unit_columns(); }
    constexpr int first_unit(int rank) const { return units() * rank / cluster_k; }
    constexpr int most_units() const { return (units() + cluster_k - 1) / cluster_k; }
    constexpr int stage_units() const { return stage_columns / unit_columns(); }
    constexpr int most_steps() const { return (most_units() + stage_units() - 1) / stage_units(); }

    // Bytes of a block of 64 rows x 64 columns, and of its scales and zero points in a unit.
    constexpr int block_bytes() const { return block_rows * block_columns * bits / 8; }
    constexpr int unit_groups() const { return group == 0 ? 0 : unit_columns() / group; }
    constexpr int unit_scale_bytes() const { return unit_groups() * block_rows * 2; }
    constexpr int unit_zero_bytes() const { return zeros ? unit_groups() * block_rows : 0; }
    /// Bytes of a unit's weights in the ring, all rows of the tile.
    constexpr int unit_bytes() const {
        return tile_blocks() * (unit_blocks() * block_bytes() + unit_scale_bytes() + unit_zero_bytes());
    }

    // x: the slice, in boxes of 64 columns that begin at multiples of 1024.
    constexpr int box_bytes() const { return tokens * 128; }
    constexpr int x_bytes() const { return most_units() * unit_blocks() * box_bytes(); }
    constexpr int kept_x_bytes() const { return x_streams ? 0 : x_bytes(); }

    // A stage: x where it passes through the ring, codes of each block of rows, then scales of each, then
    // zero points.
    constexpr int unit_x_bytes() const { return x_streams ? unit_blocks() * box_bytes() : 0; }
    constexpr int codes_at() const { return stage_units() * unit_x_bytes(); }
    constexpr int row_code_bytes() const { return stage_units() * unit_blocks() * block_bytes(); }
    constexpr int scales_at() const { return codes_at() + tile_blocks() * row_code_bytes(); }
    constexpr int row_scale_bytes() const { return stage_units() * unit_scale_bytes(); }
    constexpr int zeros_at() const { return scales_at() + tile_blocks() * row_scale_bytes(); }
    constexpr int row_zero_bytes() const { return stage_units() * unit_zero_bytes(); }
    constexpr int stage_bytes() const {
        const int bytes = stage_units() * (unit_x_bytes() + unit_bytes());
        return x_streams ? (bytes + 1023) / 1024 * 1024 : bytes;
    }

    // Sums on their way: two inboxes [place][product][source][32 lanes], 16 bytes each.
    constexpr int token_blocks() const { return tokens / 8; }
    constexpr int fragments() const { return rows / 16 * token_blocks(); }
    constexpr int owned(int rank) const { return (fragments() - rank + cluster_k - 1) / cluster_k; }
    constexpr int sources() const { return cluster_k * k_warps; }
    constexpr int place_bytes() const { return products * sources() * 512; }
    constexpr int inbox_bytes() const { return owned(0) * place_bytes(); }

    // Shared memory: x that stays, the ring, the inboxes, barriers, factors.
    constexpr int ring_at() const { return kept_x_bytes(); }
    constexpr int inbox_at() const { return ring_at() + stages * stage_bytes(); }
    constexpr int barriers_at() const { return inbox_at() + 2 * inbox_bytes(); }
    constexpr int barriers() const { return 2 * stages + 4 + (x_streams ? 0 : most_steps()); }
    constexpr int factors_at() const { return barriers_at() + 8 * barriers(); }
    /// With room to start at a multiple of 1024.
    constexpr int shared_bytes() const { return factors_at() + (factors ? 4 * tokens : 0) + 1024; }
};

}  // namespace hone::quantized_linear
