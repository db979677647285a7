// The launch in front of variant copied (kernel.cu): rows that begin anywhere, to rows that begin at
// multiples of 16 bytes, filled up with zeros, which add nothing to a sum.
//
// Data's way: a thread reads its 16 bytes element by element, each of them behind the first from level 1, and
// writes them at once.
#pragma once

#include "device/packet.cuh"
#include "device/sync.cuh"
#include "linear/copied/geometry.cuh"
#include "linear/epilogue.cuh"

namespace hone::linear::copies {

/// `count` rows, and where their copies go.
struct Rows {
    const Element* from;
    int64 stride;
    Element* to;
    int count;

    /// The `number`-th 16 bytes.
    __device__ void copy(int64 number) const {
        const int64 row = number / chunks_of(in);
        const int column = static_cast<int>(number % chunks_of(in)) * chunk;
        Packet<Element, chunk> all{};
#pragma unroll
        for (int i = 0; i < chunk; ++i) {
            if (column + i < in)
                all.elements[i] = load_packet<Element, 1>(from + row * stride + column + i).elements[0];
        }
        store_packet(to + row * pitch_of(in) + column, all);
    }
};

/// One 16 bytes of all rows for each thread.
template <int count>
__device__ inline void run(const Rows (&all)[count]) {
    if constexpr (Tuned::programmatic != 0) {
        release_successor();
        wait_for_predecessor();
    }
    int64 number = static_cast<int64>(blockIdx.x) * threads + threadIdx.x;
#pragma unroll
    for (int i = 0; i < count; ++i) {
        const int64 own = all[i].count * chunks_of(in);
        if (number >= 0 && number < own) all[i].copy(number);
        number -= own;
    }
}

}  // namespace hone::linear::copies
