// Variant ring in numbers: how a config cuts the products up, and what a block keeps where in shared memory.
// Plain C++, for the host (plan.h) and the kernel (block.cuh) alike.
//
// A tile is `rows` results of all tokens; a cluster of cluster_k blocks shares tiles, each block takes its
// share of neighbouring steps, and owns the results of its share of rows. A step is `stage_columns` columns
// of it: panels of 64 columns, each of the tile's rows (a gated tile's of the gate, and behind them those of
// up) x 128 bytes as tensor copies swizzle them, and behind all of them x's panels, of as many tokens as make
// whole instructions. The tensor cores multiply blocks of 64 rows: what the last block reads behind the
// panel's rows is whatever stands there, and its sums are nobody's.
#pragma once

namespace hone::linear {

struct RingGeometry {
    int products;
    int in;
    int out;
    int tokens;  ///< of a block, all of them
    int rows;
    int consumers;  ///< warpgroups that multiply
    int stage_columns;
    int stages;
    int cluster_k;
    bool norm;             ///< x is normalized on its way, as stages of whole clusters cannot be
    bool factors = false;  ///< tokens' sums are multiplied, as shared_norm_linear's behind a norm are

    static constexpr int panel_columns = 64;
    static constexpr int row_bytes = 128;  ///< of a panel
    /// Warps that finish: with the producer a warpgroup.
    static constexpr int finishers = 3;

    constexpr int consumer_threads() const { return 128 * consumers; }
    constexpr int threads() const { return consumer_threads() + 128; }

    constexpr int tiles() const { return (out + rows - 1) / rows; }
    /// The last one's columns that are none are zeros.
    constexpr int steps() const { return (in + stage_columns - 1) / stage_columns; }
    constexpr int first_step(int rank) const { return steps() * rank / cluster_k; }
    constexpr int most_steps() const { return (steps() + cluster_k - 1) / cluster_k; }
    constexpr int stage_panels() const { return stage_columns / panel_columns; }

    constexpr int panel_rows() const { return products * rows; }
    constexpr int row_blocks() const { return (panel_rows() + 63) / 64; }
    /// Of a warpgroup, whose four warps have 16 rows of a block each.
    constexpr bool every_warp_has_rows() const { return panel_rows() > 48; }
    /// Columns of the right operand.
    constexpr int n() const { return (tokens + 7) / 8 * 8; }

    // A stage: the weights' panels, then x's.
    constexpr int panel_bytes() const { return panel_rows() * row_bytes; }
    /// With room for tokens that are none, of which whatever stands there is multiplied.
    constexpr int x_panel_bytes() const { return n() * row_bytes; }
    /// 16 bytes each of x's columns and tokens in a stage; and of each lane of a warp that brings them.
    constexpr int stage_chunks() const { return tokens * stage_panels() * 8; }
    constexpr int lane_chunks() const { return (stage_chunks() + 31) / 32; }
    /// Steps after which the same warp brings x for the same warpgroup.
    constexpr int turn_steps() const {
        return consumers % finishers == 0 ? consumers : finishers * consumers;
    }
    /// Whether a norm can be part of the products. A warp that brings x knows of a stage's last round but one
    /// that it is over by a step of its own that the same warpgroup gave back since: the ring holds it.
    constexpr bool can_fold() const { return cluster_k == 1 && lane_chunks() <= 8 && stages >= turn_steps(); }
    constexpr int stage_x_at() const { return stage_panels() * panel_bytes(); }
    constexpr int stage_bytes() const { return stage_panels() * (panel_bytes() + x_panel_bytes()); }
    /// That copies bring.
    constexpr int copied_bytes() const {
        return stage_panels() * (panel_bytes() + (norm ? 0 : tokens * row_bytes));
    }

    // Sums on their way: two inboxes [source][tokens][pitch], rows of the block's own; without a cluster
    // whole blocks of 64 rows.
    constexpr int owned_rows() const { return rows / cluster_k; }
    constexpr int sources() const { return consumers * cluster_k; }
    constexpr int pitch() const {
        return cluster_k > 1 ? (products * owned_rows() + 15) / 16 * 16 + 4 : row_blocks() * 64 + 4;
    }
    constexpr int source_words() const { return tokens * pitch(); }
    constexpr int inbox_words() const { return sources() * source_words(); }
    /// That blocks of a cluster send.
    constexpr int inbox_bytes() const { return sources() * tokens * products * owned_rows() * 4; }

    // Squares of x [finishers][tokens], or factors [tokens]; whole pairs.
    constexpr int square_words() const {
        if (norm) return (finishers * tokens + 1) / 2 * 2;
        return factors ? (tokens + 1) / 2 * 2 : 0;
    }

    // Shared memory: the ring, sums, squares, barriers.
    constexpr int inboxes_at() const { return stages * stage_bytes(); }
    constexpr int squares_at() const { return inboxes_at() + 2 * inbox_words() * 4; }
    constexpr int barriers_at() const { return squares_at() + square_words() * 4; }
    constexpr int barriers() const { return 2 * stages + 4; }
    /// With room to start at a multiple of 1024, and no less than the last block of rows reads.
    constexpr int shared_bytes() const {
        const int end = barriers_at() + 8 * barriers();
        const int behind_rows = (row_blocks() * 64 - panel_rows()) * row_bytes;
        const int read = inboxes_at() - stage_panels() * x_panel_bytes() + behind_rows;
        return (end > read ? end : read) + 1024;
    }
};

}  // namespace hone::linear
