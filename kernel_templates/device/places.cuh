// What says where the rows of a call stand, on its way to level 2 before somebody waits for it: lengths,
// starts and page tables are read one behind the other.
#pragma once

#include "device/level_2.cuh"

namespace hone {

/// What a thread asks for at once: 32 bytes.
enum : int { prefetched_integers = 8 };

/// Those from `first` on, if there are so many.
template <class Int>
__device__ inline void prefetch_integers(const int* from, Int first, int64 count) {
    if (first < count) prefetch_level_2(from + first);
}

/// Entries of a page table from the first row to the end of the last, whose `pages` are fewer where rows are
/// further apart.
__device__ inline int64 table_entries(int64 rows, int64 stride, int64 pages) {
    return (rows - 1) * stride + min(pages, stride);
}

}  // namespace hone
