// Which parts of which tiles a block of variant wgmma (gemm.cuh) works on, in which order. Plain C++ that the
// kernel and the host's tests include alike.
//
// Tiles are numbered in groups of `raster` rows: blocks that run at the same time touch few distinct rows and
// columns, which stay in level 2. Block b takes the whole tiles b, b + blocks, ... With cluster_k the blocks
// of a cluster take the same tile, each a part of its sum.
//
// Stream-K: where the tiles do not fill their last round, those of the last two rounds are laid end to end,
// step by step, and cut into ranges of the same length, one a block. A block goes through its range from
// front to back. First comes the rest of a tile whose beginning lies in the range before: that sum it leaves
// in the workspace. Last comes the beginning of a tile that ends in later ranges: it waits for their parts
// and finishes the tile. The grid is no larger than what fits the multiprocessors together. Where other
// kernels hold some of them, that does not suffice: two such grids could each wait for blocks of their own
// that find no place. So ranges are dealt from the back, and blocks wait for blocks of lower numbers alone,
// which GPUs start first.
#pragma once

namespace hone::linear::gemm {

/// What the schedule needs of a problem and its config.
struct Tiling {
    int out = 0;
    int k_tiles = 0;  ///< steps of a sum
    int result_rows = 0;
    int result_columns = 0;
    int raster = 1;
    int cluster_k = 1;
    bool swapped = false;
    bool stream_k = false;

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
    int range;   ///< stream-K: the block's
    int others;  ///< stream-K: ranges behind it that hold the rest of the sum, where first_k is 0

    /// Stream-K: another block finishes the tile.
    constexpr bool is_rest() const { return first_k > 0; }
};

class Schedule {
  public:
    /// Of block `block` of `blocks`, in clusters: of all blocks of cluster `block`, `rank` among them.
    constexpr Schedule(const Tiling& tiling, int tokens, int blocks, int block, int rank)
        : tiling_(tiling),
          across_(tiling.across(tokens)),
          along_(tiling.along(tokens)),
          blocks_(blocks),
          block_(block),
          rank_(rank) {
        const int tiles = across_ * along_;
        whole_ = tiles;
        if (tiling.stream_k && tiles % blocks != 0)
            whole_ = tiles < 2 * blocks ? 0 : tiles - tiles % blocks - blocks;
        rounds_ = (whole_ - block + blocks - 1) / blocks;
        if (tiling.stream_k) {
            const int steps = (tiles - whole_) * tiling.k_tiles;
            range_steps_ = steps / blocks;
            longer_ranges_ = steps % blocks;
            range_ = blocks - 1 - block;
            first_ = range_begin(range_);
            end_ = range_begin(range_ + 1);
        }
    }

    /// Pieces of work, and the i-th of them.
    constexpr int count() const {
        if (first_ == end_) return rounds_;
        return rounds_ + (end_ - 1) / tiling_.k_tiles - first_ / tiling_.k_tiles + 1;
    }
    constexpr Work work(int i) const {
        if (tiling_.stream_k && i >= rounds_) return part_of_range(i - rounds_);
        Work work = whole_tile(block_ + i * blocks_);
        if (tiling_.cluster_k > 1) {
            const int parts = tiling_.cluster_k;
            work.first_k = tiling_.k_tiles * rank_ / parts;
            work.k_count = tiling_.k_tiles * (rank_ + 1) / parts - work.first_k;
        }
        return work;
    }

  private:
    constexpr Work whole_tile(int number) const {
        const int group = number / (tiling_.raster * along_);
        const int left = across_ - group * tiling_.raster;
        const int rows = left < tiling_.raster ? left : tiling_.raster;
        const int rest = number - group * tiling_.raster * along_;
        return {.row = (group * tiling_.raster + rest % rows) * tiling_.result_rows,
                .column = rest / rows * tiling_.result_columns,
                .first_k = 0,
                .k_count = tiling_.k_tiles,
                .range = range_,
                .others = 0};
    }
    constexpr Work part_of_range(int i) const {
        const int k_tiles = tiling_.k_tiles;
        const int tile = first_ / k_tiles + i;
        const int begin = tile * k_tiles;
        const int from = first_ > begin ? first_ : begin;
        const int to = end_ < begin + k_tiles ? end_ : begin + k_tiles;
        Work work = whole_tile(whole_ + tile);
        work.first_k = from - begin;
        work.k_count = to - from;
        if (from == begin) {
            while (range_begin(range_ + work.others + 1) < begin + k_tiles) ++work.others;
        }
        return work;
    }

    /// First step of a range, counted over the tiles of stream-K. Where a tile begins close by, there: a part
    /// of a few steps costs more than it evens out. A range keeps at least one step, since it is longer than
    /// twice that distance.
    constexpr int range_begin(int range) const {
        const int k_tiles = tiling_.k_tiles;
        const int begin = range * range_steps_ + (range < longer_ranges_ ? range : longer_ranges_);
        const int close = range_steps_ > 2 * least_part ? least_part : (range_steps_ - 1) / 2;
        const int behind = begin % k_tiles;
        if (behind <= close) return begin - behind;
        return k_tiles - behind <= close ? begin + k_tiles - behind : begin;
    }
    static constexpr int least_part = 3;

    Tiling tiling_;
    int across_;
    int along_;
    int blocks_;
    int block_;
    int rank_;
    int whole_ = 0;   ///< tiles that are not cut
    int rounds_ = 0;  ///< of them, this block's
    int range_steps_ = 0;
    int longer_ranges_ = 0;  ///< the first ones have a step more
    int range_ = 0;
    int first_ = 0;  ///< step of the block's range
    int end_ = 0;
};

}  // namespace hone::linear::gemm
