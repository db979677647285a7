// Norm, variant group_rows: a group of `lanes` threads - part of a warp up to a whole block - holds a row in
// registers; a block of `threads` holds threads / lanes groups, each with `rows` rows in flight.
//
// Data's way: global -> registers (all packets of all rows in flight at once) -> reduction -> registers ->
// global; one read, one write. All warps do the same. One barrier a reduction when a row spans warps, none
// otherwise.
#pragma once

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

__device__ inline void run(const Tensors& tensors) {
    __shared__ Reducer::Scratch scratch;
    if constexpr (Tuned::programmatic != 0) {
        release_successor();
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
