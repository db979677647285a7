// Norm, variant streamed_row: a block walks over one row of any length and reads it again for each pass, from
// L1 or L2 where it is still warm. No size is too large and no chip too old: the fallback of last resort.
//
// Data's way: global -> float -> reduction; global again -> float -> global. With a residual the first pass
// writes `sum` and later passes read that: each thread reads back only what it wrote itself. One barrier a
// reduction.
#pragma once

#include "norm/row.cuh"

namespace hone::norm::streamed_row {

inline constexpr int threads = Tuned::threads;
inline constexpr StoreHint store_hint = static_cast<StoreHint>(Tuned::store_hint);

using RowLayout = Layout<threads, static_cast<int>(Tuned::vector)>;
using RowParameters = Parameters<Statistic, RowLayout, false>;
using Reducer = GroupReducer<threads, threads>;

/// A row that stays in global memory.
struct Row {
    using layout = RowLayout;
    static constexpr int unroll = 4;

    __device__ bool inside(int packet) const { return RowLayout::inside(lane, packet); }
    __device__ void values(int packet, float (&out)[RowLayout::vector]) const {
        unpack(load_packet<Element, RowLayout::vector>(from + RowLayout::column(lane, packet)), out);
    }
    __device__ void weights(int packet, float (&out)[RowLayout::vector]) const {
        parameters->weights(packet, out);
    }
    __device__ void biases(int packet, float (&out)[RowLayout::vector]) const {
        parameters->biases(packet, out);
    }

    const Element* from;
    const RowParameters* parameters;
    int lane;
    bool present;
};

/// s = x + residual, written to `sum`.
__device__ inline void add_residual(const Tensors& tensors, int64 index, int lane) {
    const Element* x = tensors.x + index * tensors.x_stride;
    const Element* residual = tensors.residual + index * tensors.residual_stride;
    Element* sum = tensors.sum + index * tensors.sum_stride;
#pragma unroll(Row::unroll)
    for (int packet = 0; packet < RowLayout::packets; ++packet) {
        if (!RowLayout::inside(lane, packet)) continue;
        const int column = RowLayout::column(lane, packet);
        store_packet(sum + column, add(load_packet<Element, RowLayout::vector>(x + column),
                                       load_packet<Element, RowLayout::vector>(residual + column)));
    }
}

__device__ inline void run(const Tensors& tensors) {
    __shared__ Reducer::Scratch scratch;
    if constexpr (Tuned::programmatic != 0) {
        release_successor();
        wait_for_predecessor();
    }
    const int64 index = blockIdx.x;
    const int lane = threadIdx.x;
    RowParameters parameters;
    parameters.load(tensors, lane);
    if constexpr (has_residual) add_residual(tensors, index, lane);
    const Element* from =
        has_residual ? tensors.sum + index * tensors.sum_stride : tensors.x + index * tensors.x_stride;

    const Row row{from, &parameters, lane, true};
    Reducer reducer(scratch);
    const Scaling scaling = Statistic::scaling(row, reducer, tensors.epsilon);
    write_row<Statistic, store_hint>(row, tensors, index, scaling);
}

}  // namespace hone::norm::streamed_row

extern "C" __global__ void __launch_bounds__(hone::norm::streamed_row::threads)
    norm_streamed_row(HONE_PARAMETERS(norm_streamed_row)) {
    const hone::norm::Tensors tensors{HONE_ARGUMENTS(norm_streamed_row)};
    hone::norm::streamed_row::run(tensors);
}
