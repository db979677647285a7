// Order in which blocks take tiles: in groups of some rows, so that blocks that run at the same time touch
// few distinct rows and columns, which stay in level 2. Plain C++, for kernels and tests alike.
#pragma once

namespace hone::linear {

struct TilePlace {
    int row;
    int column;
};

/// Place of tile `index` among `rows` x `columns` tiles: groups of `group` rows (the last one smaller) one
/// after the other, each column by column.
constexpr TilePlace raster_place(int index, int rows, int columns, int group) {
    const int number = index / (group * columns);
    const int left = rows - number * group;
    const int size = left < group ? left : group;
    const int rest = index - number * group * columns;
    return {number * group + rest % size, rest / size};
}

}  // namespace hone::linear
