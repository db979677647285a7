// RMSNorm backward, variant held_rows: resident blocks walk over the rows; a group of `lanes` threads holds
// one row of dy and x (and dsum) in registers, with `ahead` the next one as well, and keeps its columns'
// weights and sums of dweight there from the first row to the last.
//
// Data's way: dy, x, dsum global -> registers -> reduction -> registers -> dx global; one read, one write. At
// the end the groups' sums of dweight meet in shared memory and leave as one float32 row a block in the
// workspace; the second launch adds those rows. The workspace begins with the number of rows it holds.
// One barrier a row when a row spans warps, none otherwise; two a packet of columns at the end.
#include "rmsnorm_backward/backward.cuh"

namespace hone::rmsnorm_backward::held_rows {

inline constexpr int threads = Tuned::threads;
inline constexpr int lanes = Tuned::lanes;
inline constexpr int groups = threads / lanes;
inline constexpr bool programmatic = Tuned::programmatic != 0;
inline constexpr LoadHint load_hint = static_cast<LoadHint>(Tuned::load_hint);
inline constexpr StoreHint store_hint = static_cast<StoreHint>(Tuned::store_hint);
/// Floats in front of the partial rows; the first is their number, as an integer.
inline constexpr int header_floats = 64;

using RowLayout = Layout<lanes, static_cast<int>(Tuned::vector)>;
using Reducer = GroupReducer<threads, lanes>;
using Exchange = GroupExchange<threads, groups, lanes * RowLayout::vector>;
using RowPacket = Packet<Element, RowLayout::vector>;

/// One thread's share of a row.
struct Row {
    int64 index;
    bool present;
    RowPacket dy[RowLayout::packets];
    RowPacket x[RowLayout::packets];
    RowPacket dsum[has_residual ? RowLayout::packets : 1];
};

/// What a thread keeps while its group walks over the rows.
class Walker {
  public:
    __device__ Walker(const Tensors& tensors, Reducer::Scratch& scratch)
        : tensors_(tensors), reducer_(scratch), lane_(threadIdx.x % lanes) {}

    __device__ void load_weights() {
#pragma unroll
        for (int packet = 0; packet < RowLayout::packets; ++packet) {
            weights_[packet] = load_packet<Element, RowLayout::vector>(
                tensors_.weight + RowLayout::readable_column(lane_, packet));
        }
    }

    /// Issues all loads of a row; where there is none, those of the last one: loads stand under no branch.
    __device__ void read(Row& row, int64 index) const {
        row.index = index;
        row.present = index < tensors_.rows;
        const int64 source = row.present ? index : tensors_.rows - 1;
        load(tensors_.dy + source * tensors_.dy_stride, row.dy);
        load(tensors_.x + source * tensors_.x_stride, row.x);
        if constexpr (has_residual) load(tensors_.dsum + source * tensors_.dsum_stride, row.dsum);
    }

    /// Writes dx of the row and adds to the sums of dweight. Every thread of the block joins, present or not.
    __device__ void finish(Row& row) {
        RowSums sums;
#pragma unroll
        for (int packet = 0; packet < RowLayout::packets; ++packet) {
            if (RowLayout::inside(lane_, packet)) sums.add(row.dy[packet], row.x[packet], weights_[packet]);
        }
        const RowFactors factors = sums.factors(reducer_, tensors_.epsilon);
        if (!row.present) return;
        Element* dx = tensors_.dx + row.index * tensors_.dx_stride;
#pragma unroll
        for (int packet = 0; packet < RowLayout::packets; ++packet) {
            if (!RowLayout::inside(lane_, packet)) continue;
            forget_floats(row.dy[packet]);
            forget_floats(row.x[packet]);
            forget_floats(weights_[packet]);
            store_packet<store_hint>(
                dx + RowLayout::column(lane_, packet),
                gradients(factors, row.dy[packet], row.x[packet], weights_[packet],
                          row.dsum[has_residual ? packet : 0], partials_ + packet * RowLayout::vector));
        }
    }

    /// The block's row of partial sums.
    __device__ void write_partials(Exchange::Scratch& scratch) const {
        constexpr int columns = lanes * RowLayout::vector;
        float* to = tensors_.workspace + header_floats + static_cast<int64>(blockIdx.x) * hidden;
        if (blockIdx.x == 0 && threadIdx.x == 0) *reinterpret_cast<uint32*>(tensors_.workspace) = gridDim.x;
        Exchange exchange(scratch);
#pragma unroll
        for (int packet = 0; packet < RowLayout::packets; ++packet) {
            exchange.combine<RowLayout::vector>(threadIdx.x / lanes, lane_,
                                                partials_ + packet * RowLayout::vector, to + packet * columns,
                                                hidden - packet * columns);
        }
    }

  private:
    __device__ void load(const Element* from, RowPacket* to) const {
#pragma unroll
        for (int packet = 0; packet < RowLayout::packets; ++packet) {
            to[packet] = load_packet<Element, RowLayout::vector, load_hint>(
                from + RowLayout::readable_column(lane_, packet));
        }
    }

    const Tensors& tensors_;
    Reducer reducer_;
    int lane_;
    RowPacket weights_[RowLayout::packets];
    float partials_[RowLayout::packets * RowLayout::vector] = {};
};

/// Rows `first`, `first` + `step`, ... of one group; `rounds` is the same for all groups of a block.
__device__ inline void walk(Walker& walker, int64 first, int64 step, int rounds) {
    if constexpr (Tuned::ahead != 0) {
        // Two rows take turns, so that no register moves from one to the other.
        Row even;
        Row odd;
        walker.read(even, first);
        walker.load_weights();
        for (int round = 0; round < rounds; round += 2, first += 2 * step) {
            walker.read(odd, first + step);
            walker.finish(even);
            if (round + 1 == rounds) break;
            walker.read(even, first + 2 * step);
            walker.finish(odd);
        }
    } else {
        walker.load_weights();
        for (int round = 0; round < rounds; ++round, first += step) {
            Row row;
            walker.read(row, first);
            walker.finish(row);
        }
    }
}

__device__ inline void run(const Tensors& tensors) {
    __shared__ Reducer::Scratch scratch;
    __shared__ Exchange::Scratch exchange;
    if constexpr (programmatic) {
        release_successor();
        wait_for_predecessor();
    }
    const int64 block_first = static_cast<int64>(blockIdx.x) * groups;
    const int64 step = static_cast<int64>(gridDim.x) * groups;
    const int rounds = static_cast<int>((tensors.rows - block_first + step - 1) / step);
    Walker walker(tensors, scratch);
    walk(walker, block_first + threadIdx.x / lanes, step, rounds);
    walker.write_partials(exchange);
}

}  // namespace hone::rmsnorm_backward::held_rows

extern "C" __global__ void __launch_bounds__(hone::rmsnorm_backward::held_rows::threads, Tuned::blocks_per_sm)
    rmsnorm_backward_held_rows(HONE_PARAMETERS(rmsnorm_backward_held_rows)) {
    const hone::rmsnorm_backward::Tensors tensors{HONE_ARGUMENTS(rmsnorm_backward_held_rows)};
    hone::rmsnorm_backward::held_rows::run(tensors);
}

extern "C" __global__ void __launch_bounds__(hone::rmsnorm_backward::sum_threads, 4)
    rmsnorm_backward_sum_partials(HONE_PARAMETERS(rmsnorm_backward_sum_partials)) {
    const hone::rmsnorm_backward::Tensors tensors{HONE_ARGUMENTS(rmsnorm_backward_sum_partials)};
    using namespace hone::rmsnorm_backward;
    if constexpr (held_rows::programmatic) {
        hone::release_successor();
        hone::wait_for_predecessor();
    }
    const int count = static_cast<int>(*reinterpret_cast<const hone::uint32*>(tensors.workspace));
    sum_partials<static_cast<int>(Tuned::sum_lanes)>(tensors.workspace + held_rows::header_floats, count,
                                                     tensors.dweight);
}
