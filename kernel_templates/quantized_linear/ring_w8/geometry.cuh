// Variant ring_w8 in numbers: how a config cuts the products up, and what a block keeps where in shared
// memory. Plain C++, for the host (plan.h) and the kernel (block.cuh) alike.
//
// A tile is `rows` results of all tokens. A step is `stage_columns` columns of it: panels of 128 columns,
// each of the tile's rows (a gated tile's of the gate, and behind them those of up) x 128 bytes as tensor
// copies swizzle them. The tensor cores multiply blocks of 64 rows: what the last block reads behind the
// panel's rows is whatever stands there, and its sums are nobody's.
//
// x stands in shared memory in chunks of 16 codes, the chunks of all tokens side by side: chunk c of token t
// is number tokens * c + t. A right operand without swizzle wants 8 neighbouring chunks for 8 tokens; where
// there are fewer tokens it gets the next columns' in their places, for sums that are nobody's.
#pragma once

namespace hone::quantized_linear {

struct RingW8Geometry {
    int products;
    int in;
    int out;
    bool blocks_scaled;  ///< sums of 128 columns have a scale of their own
    int tokens;          ///< tokens of a block, all of them
    int rows;
    int consumers;  ///< warpgroups that multiply
    int stage_columns;
    int stages;
    bool x_streams;

    static constexpr int panel_columns = 128;
    /// Warps that finish: with the producer a warpgroup.
    static constexpr int finishers = 3;
    static constexpr int chunk = 16;

    constexpr int consumer_threads() const { return 128 * consumers; }
    constexpr int threads() const { return consumer_threads() + 128; }

    constexpr int tiles() const { return (out + rows - 1) / rows; }
    constexpr int steps() const { return (in + stage_columns - 1) / stage_columns; }
    /// Columns with those that are none: copies and x have zeros there.
    constexpr int columns() const { return steps() * stage_columns; }
    constexpr int panels() const { return columns() / panel_columns; }
    constexpr int stage_panels() const { return stage_columns / panel_columns; }

    constexpr int panel_rows() const { return products * rows; }
    constexpr int row_blocks() const { return (panel_rows() + 63) / 64; }
    /// Columns of the right operand.
    constexpr int n() const { return (tokens + 7) / 8 * 8; }

    // A stage: the weights' panels, and behind them x's where it passes through the ring.
    constexpr int panel_bytes() const { return panel_rows() * panel_columns; }
    constexpr int x_panel_bytes() const { return x_streams ? n() * panel_columns : 0; }
    constexpr int stage_x_at() const { return stage_panels() * panel_bytes(); }
    constexpr int stage_bytes() const { return stage_panels() * (panel_bytes() + x_panel_bytes()); }

    // x that stays, with what the last chunk's right operand reads behind it.
    constexpr int x_chunks() const { return x_streams ? 0 : columns() / chunk * tokens; }
    constexpr int x_bytes() const { return x_streams ? 0 : (x_chunks() + n() - tokens) * chunk; }
    /// Scales of x: of each token, or [panels][n].
    constexpr int scale_words() const { return blocks_scaled ? panels() * n() : n(); }

    // Sums on their way: two buffers [consumers][tokens][pitch].
    constexpr int pitch() const { return row_blocks() * 64 + 4; }
    constexpr int partial_words() const { return tokens * pitch(); }
    constexpr int buffer_words() const { return consumers * partial_words(); }

    // Shared memory: the ring, x that stays, scales, largest magnitudes, sums, barriers.
    constexpr int x_at() const { return stages * stage_bytes(); }
    constexpr int scales_at() const { return x_at() + x_bytes(); }
    constexpr int largest_at() const { return scales_at() + scale_words() * 4; }
    constexpr int partials_at() const { return largest_at() + n() * 4; }
    constexpr int barriers_at() const { return partials_at() + 2 * buffer_words() * 4; }
    constexpr int barriers() const { return 2 * stages + 4; }
    /// With room to start at a multiple of 1024, and no less than the last block of rows reads.
    constexpr int shared_bytes() const {
        const int end = barriers_at() + 8 * barriers();
        const int read = x_at() + (row_blocks() * 64 - panel_rows()) * panel_columns;
        return (end > read ? end : read) + 1024;
    }
};

}  // namespace hone::quantized_linear
