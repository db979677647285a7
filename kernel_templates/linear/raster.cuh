// Order in which blocks take tiles: in groups of some rows, so that blocks that run at the same time touch
// few distinct rows and columns, which stay in level 2.
#pragma once

namespace hone::linear {

struct TilePlace {
    int row;
    int column;
};

/// Place of tile `index` among `rows` x `columns` tiles: groups of `group` rows (the last one smaller) one
/// after the other, each column by column.
__device__ inline TilePlace raster(int index, int rows, int columns, int group) {
    const int number = index / (group * columns);
    const int size = min(rows - number * group, group);
    const int rest = index - number * group * columns;
    return {number * group + rest % size, rest / size};
}

}  // namespace hone::linear
