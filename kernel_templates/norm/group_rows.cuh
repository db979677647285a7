// Norm, variant group_rows: a group of `lanes` threads - part of a warp up to a whole block - holds a row in
// registers; a block of `threads` holds threads / lanes groups, each with `rows` rows in flight.
//
// Data's way: global -> registers (all packets of all rows in flight at once) -> reduction -> registers ->
// global; one read, one write. All warps do the same. One barrier a reduction when a row spans warps, none
// otherwise.
#pragma once

#include "device/level_2.cuh"
#include "norm/row.cuh"

namespace hone::norm::group_rows {

inline constexpr int threads = Tuned::threads;
inline constexpr int lanes = Tuned::lanes;
inline constexpr int rows_in_flight = Tuned::rows;
inline constexpr RowLoad load_hint = static_cast<RowLoad>(Tuned::load_hint);
inline constexpr StoreHint store_hint = static_cast<StoreHint>(Tuned::store_hint);

using RowLayout = Layout<lanes, static_cast<int>(Tuned::vector)>;
using RowParameters = Parameters<Statistic, RowLayout, Tuned::early_weights != 0>;
using Row = RegisterRow<RowLayout, RowParameters>;
using Reducer = GroupReducer<threads, lanes>;

/// Asks level 2, where all writes pass, for the group's rows, while memory has little to do: between the last
/// loads of the call ahead and its end. Not for weights: thousands of threads that ask for the same lines
/// stand in a queue there, which took longer than all rows.
__device__ inline void ask_ahead(const Tensors& tensors) {
    // Threads that all multiprocessors hold: blocks behind these begin when the call ahead has ended.
    constexpr int resident_threads = 1 << 18;
    if (blockIdx.x >= resident_threads / threads) return;
    constexpr int sector = 32 / static_cast<int>(sizeof(Element));
    const int lane = threadIdx.x % lanes;
    if (lane * RowLayout::vector % sector != 0) return;
    const int64 group = static_cast<int64>(blockIdx.x) * (threads / lanes) + threadIdx.x / lanes;
#pragma unroll
    for (int i = 0; i < rows_in_flight; ++i) {
        const int64 index = min(group * rows_in_flight + i, tensors.rows - 1);
#pragma unroll
        for (int packet = 0; packet < RowLayout::packets; ++packet) {
            const int column = RowLayout::readable_column(lane, packet);
            prefetch_level_2(tensors.x + index * tensors.x_stride + column);
            if constexpr (has_residual)
                prefetch_level_2(tensors.residual + index * tensors.residual_stride + column);
        }
    }
}

__device__ inline void run(const Tensors& tensors) {
    __shared__ Reducer::Scratch scratch;
    if constexpr (Tuned::programmatic != 0) {
        release_successor();
        if constexpr (Tuned::programmatic == 2) ask_ahead(tensors);
        wait_for_predecessor();
    }
    const int lane = threadIdx.x % lanes;
    const int64 group = static_cast<int64>(blockIdx.x) * (threads / lanes) + threadIdx.x / lanes;

    const int64 first = group * rows_in_flight;

    RowParameters parameters;
    Row rows[rows_in_flight];
#pragma unroll
    for (int i = 0; i < rows_in_flight; ++i) {
        rows[i].parameters = &parameters;
        rows[i].lane = lane;
        rows[i].template read<load_hint>(tensors, first + i);
    }
    parameters.load(tensors, lane);

    Reducer reducer(scratch);
#pragma unroll
    for (int i = 0; i < rows_in_flight; ++i) {
        if constexpr (has_residual) rows[i].template add_residual<store_hint>(tensors, first + i);
        const Scaling scaling = Statistic::scaling(rows[i], reducer, tensors.epsilon);
        write_row<Statistic, store_hint>(rows[i], tensors, first + i, scaling);
    }
}

}  // namespace hone::norm::group_rows

extern "C" __global__ void __launch_bounds__(hone::norm::group_rows::threads)
    norm_group_rows(HONE_PARAMETERS(norm_group_rows)) {
    const hone::norm::Tensors tensors{HONE_ARGUMENTS(norm_group_rows)};
    hone::norm::group_rows::run(tensors);
}
