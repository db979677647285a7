// The launch after the main one: adds the pieces of lists that were cut. Blocks as of the first launch in x,
// rows in y; the block of a slot looks after the list that the slot goes on with, if the slot before began
// it. Where the main launch leaves no pieces the kernel is empty: nobody launches it, and it costs a fifth of
// an image's compile time.
#pragma once

#include "attention_decode/join.cuh"

namespace hone::attention_decode {

inline constexpr int combine_threads = 128;
/// Nearly all lists have no more; more at once would take registers that blocks beside each other need.
inline constexpr int few_pieces = 4;
inline constexpr bool leaves_pieces = cluster == 1 && join_way == Join::second_launch;

__device__ inline void combine(const Tensors& tensors) {
    // Before the wait: lengths are not what the first launch writes, and it had waited for who does.
    const Line line(tensors);
    const int slots = line.slots(static_cast<int>(gridDim.x));
    const int slot = static_cast<int>(blockIdx.x) / lines;
    const bool idle = slot == 0 || slot >= slots;
    int sequence = 0;
    int list_in_line = 0;
    Pieces pieces{};
    if (!idle) {
        const int first = line.cut(slot, slots);
        int start;
        line.find(first, sequence, start);
        const int units = units_of(tensors, tensors.length(sequence));
        list_in_line = (first - start) / units;
        pieces = pieces_of(start + list_in_line * units, units, line.units(), slots);
    }
    // Also blocks without work must wait: the next kernel waits for this one alone.
    wait_for_predecessor();
    if (idle || pieces.first != slot - 1 || pieces.last < slot) return;
    const int place = static_cast<int>(blockIdx.x) % lines;
    const Workspace workspace(tensors, static_cast<int>(gridDim.x));
    for (int item = threadIdx.x; item < row_items; item += combine_threads) {
        const int all = static_cast<int>(blockIdx.y) * row_items + item;
        workspace.join<few_pieces>(pieces, place, all)
            .store(tensors, sequence, lines > 1 ? place : list_in_line, all);
    }
}

}  // namespace hone::attention_decode

extern "C" __global__ void __launch_bounds__(hone::attention_decode::combine_threads)
    attention_decode_combine(HONE_PARAMETERS(attention_decode_combine)) {
    if constexpr (hone::attention_decode::leaves_pieces) {
        const hone::attention_decode::Tensors tensors{HONE_ARGUMENTS(attention_decode_combine)};
        hone::release_successor();
        hone::attention_decode::combine(tensors);
    }
}
