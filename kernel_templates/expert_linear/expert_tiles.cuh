// Which tile of rows is whose: from the call's starts, by each warp for itself, without a barrier. Blocks
// whose index is beyond the tiles that the routing needs find none and leave.
//
// Work is numbered expert by expert, in each column by column of tiles, in each of these row by row: blocks
// that run at the same time share an expert's weights in level 2.
#pragma once

#include "device/warp.cuh"
#include "expert_linear/tensors.cuh"

namespace hone::expert_linear {

/// Rows [first, end) of the sorted rows, at most a tile's, all of one expert; and a column of tiles.
struct Tile {
    int expert;
    int first;
    int end;
    int column;
};

/// Which of the tiles are numbered: all, or where an expert's last tile is a narrow one if its rows are few,
/// the others or these.
enum class TilesOf { all, whole, narrow };

/// `across`: columns of tiles; `narrow_rows`: most rows of a narrow tile.
template <int tile_rows, int across, TilesOf which = TilesOf::all, int narrow_rows = 0>
class ExpertTiles {
  public:
    /// By a whole warp, as find().
    __device__ explicit ExpertTiles(const Tensors& tensors)
        : starts_(tensors.starts), places_(tensors.places()) {
        int own = 0;
#pragma unroll
        for (int i = 0; i < held; ++i) own += tiles_of(lane_index() * held + i);
        own_ = min(own, most_a_lane);
        until_ = inclusive_sum(own_);
    }
    /// How much work there is.
    __device__ int64 count() const { return static_cast<int64>(__shfl_sync(all_lanes, until_, 31)) * across; }
    /// Work number `index`; false: there is none.
    __device__ bool find(int64 index, Tile& tile) const {
        int row_tile = static_cast<int>(index / across);
        const int lane = first_lane(row_tile < until_);
        if (lane == 32) return false;
        const int before = __shfl_sync(all_lanes, until_ - own_, lane);
        row_tile -= before;
        int64 first_work = static_cast<int64>(before) * across;
        bool found = false;
#pragma unroll
        for (int i = 0; i < held; ++i) {
            const int expert = lane * held + i;
            const int tiles = tiles_of(expert);
            if (!found && row_tile < tiles) {
                found = true;
                locate(tile, expert, tiles, static_cast<int>(index - first_work));
            }
            row_tile -= tiles;
            first_work += static_cast<int64>(tiles) * across;
        }
        return found && tile.first < tile.end;
    }

  private:
    /// Experts that a lane looks at.
    static constexpr int held = (experts + 31) / 32;
    /// More than any right routing has; so sums do not overflow whatever the starts say.
    static constexpr int most_a_lane = 1 << 25;

    __device__ int begin(int expert) const { return min(max(starts_[expert], 0), places_); }
    __device__ int end(int expert) const { return min(max(starts_[expert + 1], begin(expert)), places_); }
    __device__ int tiles_of(int expert) const {
        if (expert >= experts) return 0;
        const int rows = end(expert) - begin(expert);
        if constexpr (which == TilesOf::whole)
            return (rows + tile_rows - 1 - narrow_rows) / tile_rows;
        else if constexpr (which == TilesOf::narrow)
            return rows % tile_rows != 0 && rows % tile_rows <= narrow_rows ? 1 : 0;
        else
            return (rows + tile_rows - 1) / tile_rows;
    }
    /// `work` of the expert's tiles times columns.
    __device__ void locate(Tile& tile, int expert, int tiles, int work) const {
        tile.expert = expert;
        tile.column = work / tiles;
        const int before =
            which == TilesOf::narrow ? (end(expert) - begin(expert)) / tile_rows : work % tiles;
        tile.first = begin(expert) + before * tile_rows;
        tile.end = min(tile.first + tile_rows, end(expert));
    }

    const int* starts_;
    int places_;
    int own_;
    int until_;  ///< tiles of this lane's experts and all before
};

}  // namespace hone::expert_linear
