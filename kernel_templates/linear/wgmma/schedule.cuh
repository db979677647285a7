// Which parts of which tiles a block of variant wgmma (product.cuh) works on, in which order. Plain C++ that
// the kernel and the host's tests include alike.
//
// Tiles are numbered in groups of `raster` rows: blocks that run at the same time touch few distinct rows and
// columns, which stay in level 2. Block b takes the whole tiles b, b + blocks, ... With cluster_k the blocks
// of a cluster take the same tile, each a part of its sum.
//
// Tiles of neighbouring numbers share rows of one operand. A launch in clusters of neighbours, of which the
// kernel knows nothing, puts the blocks that take them on neighbouring multiprocessors, whose copies of the
// same rows at the same time level 2 answers once. Numbers go down the rows of a group: neighbours share the
// right operand's rows; with groups of one row (raster = 1), the left one's.
//
// tail_split: tiles of the last round that half of the blocks or fewer would take are cut, each into as many
// parts of its sum as there are blocks for it. Part p of every such tile runs beside the other tiles' part p:
// blocks that run at the same time stand at the same steps, and share panels in level 2 as those of whole
// tiles do. Parts go through the workspace (partials.cuh) to the block that has the sum's beginning,
// which finishes the tile.
//
// In pairs the two blocks of a cluster share a tile of the last round, each a half of its sum, and join their
// sums as those of a cluster do: block 2 i and 2 i + 1 the i-th of these tiles.
//
// The grid is no larger than what fits the multiprocessors together. Where other kernels hold some of them,
// that does not suffice: two such grids could each wait for blocks of their own that find no place. So parts
// are dealt from the back, and blocks wait for blocks of lower numbers alone, which GPUs start first.
#pragma once

#include "linear/raster.cuh"

namespace hone::linear::gemm {

/// What the schedule needs of a problem and its config.
struct Tiling {
    int out = 0;
    int k_tiles = 0;  ///< steps of a sum
    int k_unit = 1;   ///< parts of a sum are whole multiples of so many steps; divides k_tiles
    int result_rows = 0;
    int result_columns = 0;
    int raster = 1;
    int cluster_k = 1;
    bool swapped = false;
    bool tail_split = false;
    bool in_pairs = false;  ///< tail_split between the two blocks of a cluster

    constexpr int across(int tokens) const {
        return ((swapped ? out : tokens) + result_rows - 1) / result_rows;
    }
    constexpr int along(int tokens) const {
        return ((swapped ? tokens : out) + result_columns - 1) / result_columns;
    }
};

/// A tile, or steps of its sum.
struct Work {
    int row;     ///< first left row, in terms of results
    int column;  ///< first right row, in terms of results
    int first_k;
    int k_count;
    int slot;    ///< tail_split: where the part is left; where first_k is 0: of the first other part
    int others;  ///< tail_split: parts that hold the rest of the sum, where first_k is 0

    /// tail_split: another block finishes the tile.
    constexpr bool is_rest() const { return first_k > 0; }
};

/// Parts of a sum, tail_split: one where nothing is cut. Each adds a round through level 2 and has some steps
/// at least.
constexpr int tail_parts(int tiles, int blocks, int k_tiles) {
    constexpr int most = 8;
    constexpr int least_steps = 4;
    const int rest = tiles % blocks;
    int parts = rest == 0 ? 1 : blocks / rest;
    if (parts > most) parts = most;
    if (parts > k_tiles / least_steps) parts = k_tiles / least_steps;
    return parts > 1 ? parts : 1;
}

/// The same in pairs, of `blocks` in clusters of two.
constexpr int pair_parts(int tiles, int blocks, int k_tiles) {
    constexpr int least_steps = 4;
    const int rest = tiles % blocks;
    return rest > 0 && 2 * rest <= blocks && k_tiles >= 2 * least_steps ? 2 : 1;
}

class Schedule {
  public:
    /// The work of block `block` of `blocks`; in clusters, that of the block with `rank` in cluster `block`.
    constexpr Schedule(const Tiling& tiling, int tokens, int blocks, int block, int rank)
        : tiling_(tiling),
          across_(tiling.across(tokens)),
          along_(tiling.along(tokens)),
          blocks_(blocks),
          block_(block),
          rank_(rank) {
        const int tiles = across_ * along_;
        whole_ = tiles;
        if (tiling.tail_split)
            parts_ = tiling.in_pairs ? pair_parts(tiles, blocks, tiling.k_tiles)
                                     : tail_parts(tiles, blocks, tiling.k_tiles);
        if (parts_ > 1) whole_ -= tiles % blocks;
        rest_ = tiles - whole_;
        rounds_ = (whole_ - block + blocks - 1) / blocks;
    }

    /// Pieces of work that are whole tiles, and come first.
    constexpr int whole_count() const { return rounds_; }
    /// Pieces of work, and the i-th of them.
    constexpr int count() const { return rounds_ + (block_ < rest_ * parts_ ? 1 : 0); }
    constexpr Work work(int i) const {
        if (tiling_.tail_split && i >= rounds_) return tail_part();
        Work work = whole_tile(block_ + i * blocks_);
        if (tiling_.cluster_k > 1) take_part(work, rank_, tiling_.cluster_k);
        return work;
    }

  private:
    constexpr Work whole_tile(int number) const {
        const TilePlace place = raster_place(number, across_, along_, tiling_.raster);
        return {.row = place.row * tiling_.result_rows,
                .column = place.column * tiling_.result_columns,
                .first_k = 0,
                .k_count = tiling_.k_tiles,
                .slot = 0,
                .others = 0};
    }
    constexpr void take_part(Work& work, int part, int parts) const {
        const int units = tiling_.k_tiles / tiling_.k_unit;
        work.first_k = units * part / parts * tiling_.k_unit;
        work.k_count = units * (part + 1) / parts * tiling_.k_unit - work.first_k;
    }
    constexpr Work tail_part() const {
        const int tile = tiling_.in_pairs ? block_ / 2 : block_ % rest_;
        const int part = tiling_.in_pairs ? block_ % 2 : parts_ - 1 - block_ / rest_;
        Work work = whole_tile(whole_ + tile);
        take_part(work, part, parts_);
        work.slot = tile * (parts_ - 1) + (part > 0 ? part - 1 : 0);
        work.others = part > 0 ? 0 : parts_ - 1;
        return work;
    }

    Tiling tiling_;
    int across_;
    int along_;
    int blocks_;
    int block_;
    int rank_;
    int whole_ = 0;   ///< tiles that are not cut
    int rounds_ = 0;  ///< how many of them this block does
    int rest_ = 0;    ///< tiles that are
    int parts_ = 1;   ///< parts of each of those
};

}  // namespace hone::linear::gemm
