// RMSNorm backward, variant two_pass: any row length on any chip, the fallback of last resort.
//
// Data's way: 1. a block reads a row of dy and x once and leaves its two factors in the workspace. 2. A block
// takes a tile of 32 packets of columns and a chunk of rows: each warp walks over every so many-th row, reads
// dy, x (and dsum) again - from L2 where they still are there, therefore last rows first - writes dx, and
// keeps the sums of dweight in registers; they meet in shared memory and leave as one float32 row a chunk.
// 3. The partial rows are added. Workspace: partial sums [chunks, hidden], r [rows], share [rows].
// One barrier in the first launch's reduction, two at the end of the second.
#include "rmsnorm_backward/backward.cuh"

namespace hone::rmsnorm_backward::two_pass {

inline constexpr int threads = Tuned::threads;
inline constexpr int warps = threads / 32;
inline constexpr int vector = Tuned::vector;
inline constexpr int chunks = Tuned::chunks;
inline constexpr bool programmatic = Tuned::programmatic != 0;
inline constexpr StoreHint store_hint = static_cast<StoreHint>(Tuned::store_hint);
inline constexpr int tile_columns = 32 * vector;
inline constexpr int tiles = (hidden + tile_columns - 1) / tile_columns;

using RowLayout = Layout<threads, vector>;
using Reducer = GroupReducer<threads, threads>;
using Exchange = GroupExchange<threads, warps, tile_columns>;
using RowPacket = Packet<Element, vector>;

/// The parts of the workspace.
struct Workspace {
    __device__ explicit Workspace(const Tensors& tensors)
        : partials(tensors.workspace),
          factors(partials + static_cast<int64>(chunks) * hidden),
          shares(factors + tensors.rows) {}
    float* partials;
    float* factors;
    float* shares;
};

__device__ inline void begin_launch() {
    if constexpr (programmatic) {
        release_successor();
        wait_for_predecessor();
    }
}

__device__ inline void find_factors(const Tensors& tensors) {
    __shared__ Reducer::Scratch scratch;
    begin_launch();
    const int lane = threadIdx.x;
    const int64 index = blockIdx.x;
    const Element* dy = tensors.dy + index * tensors.dy_stride;
    const Element* x = tensors.x + index * tensors.x_stride;
    RowSums sums;
#pragma unroll 4
    for (int packet = 0; packet < RowLayout::packets; ++packet) {
        const int column = RowLayout::readable_column(lane, packet);
        const RowPacket dy_packet = load_packet<Element, vector>(dy + column);
        const RowPacket x_packet = load_packet<Element, vector>(x + column);
        const RowPacket weight = load_packet<Element, vector>(tensors.weight + column);
        if (RowLayout::inside(lane, packet)) sums.add(dy_packet, x_packet, weight);
    }
    Reducer reducer(scratch);
    const RowFactors factors = sums.factors(reducer, tensors.epsilon);
    if (threadIdx.x != 0) return;
    const Workspace workspace(tensors);
    workspace.factors[index] = factors.factor;
    workspace.shares[index] = factors.share;
}

/// One thread's packet of one row in the second launch.
struct Cell {
    RowFactors factors;
    RowPacket dy;
    RowPacket x;
    RowPacket dsum;
};

__device__ inline Cell read_cell(const Tensors& tensors, const Workspace& workspace, int64 row, int column) {
    Cell cell;
    cell.factors = {workspace.factors[row], workspace.shares[row]};
    cell.dy = load_packet<Element, vector>(tensors.dy + row * tensors.dy_stride + column);
    cell.x = load_packet<Element, vector>(tensors.x + row * tensors.x_stride + column);
    if constexpr (has_residual)
        cell.dsum = load_packet<Element, vector>(tensors.dsum + row * tensors.dsum_stride + column);
    return cell;
}

__device__ inline void apply_factors(const Tensors& tensors) {
    __shared__ Exchange::Scratch scratch;
    begin_launch();
    const Workspace workspace(tensors);
    const int tile = blockIdx.x % tiles;
    const int chunk = chunks - 1 - static_cast<int>(blockIdx.x) / tiles;
    const int lane = threadIdx.x % 32;
    const int column = tile * tile_columns + lane * vector;
    const bool inside = column < hidden;
    const int readable = inside ? column : 0;
    const int64 chunk_rows = (tensors.rows + chunks - 1) / chunks;
    const int64 end = (chunk + 1) * chunk_rows < tensors.rows ? (chunk + 1) * chunk_rows : tensors.rows;

    const RowPacket weight = load_packet<Element, vector>(tensors.weight + readable);
    float partials[vector] = {};
    const auto finish = [&](const Cell& cell, int64 row) {
        if (!inside) return;
        store_packet<store_hint>(tensors.dx + row * tensors.dx_stride + column,
                                 gradients(cell.factors, cell.dy, cell.x, weight, cell.dsum, partials));
    };
    for (int64 row = chunk * chunk_rows + threadIdx.x / 32; row < end; row += 2 * warps) {
        const bool has_next = row + warps < end;
        const Cell cell = read_cell(tensors, workspace, row, readable);
        const Cell next = read_cell(tensors, workspace, has_next ? row + warps : row, readable);
        finish(cell, row);
        if (has_next) finish(next, row + warps);
    }
    Exchange(scratch).combine<vector>(
        threadIdx.x / 32, lane, partials,
        workspace.partials + static_cast<int64>(chunk) * hidden + tile * tile_columns,
        hidden - tile * tile_columns);
}

}  // namespace hone::rmsnorm_backward::two_pass

extern "C" __global__ void __launch_bounds__(hone::rmsnorm_backward::two_pass::threads)
    rmsnorm_backward_find_factors(HONE_PARAMETERS(rmsnorm_backward_find_factors)) {
    const hone::rmsnorm_backward::Tensors tensors{HONE_ARGUMENTS(rmsnorm_backward_find_factors)};
    hone::rmsnorm_backward::two_pass::find_factors(tensors);
}

extern "C" __global__ void __launch_bounds__(hone::rmsnorm_backward::two_pass::threads)
    rmsnorm_backward_apply_factors(HONE_PARAMETERS(rmsnorm_backward_apply_factors)) {
    const hone::rmsnorm_backward::Tensors tensors{HONE_ARGUMENTS(rmsnorm_backward_apply_factors)};
    hone::rmsnorm_backward::two_pass::apply_factors(tensors);
}

extern "C" __global__ void __launch_bounds__(hone::rmsnorm_backward::sum_threads, 4)
    rmsnorm_backward_sum_partials(HONE_PARAMETERS(rmsnorm_backward_sum_partials)) {
    const hone::rmsnorm_backward::Tensors tensors{HONE_ARGUMENTS(rmsnorm_backward_sum_partials)};
    using namespace hone::rmsnorm_backward;
    two_pass::begin_launch();
    sum_partials<static_cast<int>(Tuned::sum_lanes)>(tensors.workspace, two_pass::chunks, tensors.dweight);
}
