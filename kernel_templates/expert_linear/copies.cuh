// The launch in front of a product that copies gathered rows: x's row of every place into the workspace, so
// that the product finds them sorted and a tensor copy brings a whole box. Data's way: x -> registers ->
// workspace, 16 bytes an access; a block takes a place. No barrier.
#pragma once

#include "device/packet.cuh"
#include "device/sync.cuh"
#include "expert_linear/room.cuh"
#include "expert_linear/tensors.cuh"

namespace hone::expert_linear::copies {

inline constexpr int threads = 128;  // as in copies.cpp
inline constexpr int vector = 16 / sizeof(Element);
static_assert(in % vector == 0, "packets do not reach past the end of a row");

__device__ inline void run(const Tensors& tensors) {
    if constexpr (Tuned::programmatic != 0) {
        release_successor();
        wait_for_predecessor();
    }
    const int place = static_cast<int>(blockIdx.x);
    const int64 at = copies_at(tensors.places(), combines ? columns * sizeof(Element) : 0);
    Element* const to = reinterpret_cast<Element*>(reinterpret_cast<uint8*>(tensors.workspace) + at) +
                        static_cast<int64>(place) * in;
    const Element* const from = tensors.x_at(place);
#pragma unroll 4
    for (int column = static_cast<int>(threadIdx.x) * vector; column < in; column += threads * vector)
        store_packet(to + column, load_packet<Element, vector>(from + column));
}

}  // namespace hone::expert_linear::copies

/// In every image of a variant, empty where nothing is copied.
extern "C" __global__ void __launch_bounds__(hone::expert_linear::copies::threads)
    expert_linear_copies(HONE_PARAMETERS(expert_linear_copies)) {
    const hone::expert_linear::Tensors tensors{HONE_ARGUMENTS(expert_linear_copies)};
    if constexpr (Tuned::copied_x != 0) hone::expert_linear::copies::run(tensors);
}
