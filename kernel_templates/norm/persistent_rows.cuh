// Norm, variant persistent_rows: as many blocks as fit stay resident and walk over the rows; a ring of
// `stages` rows in shared memory is filled ahead by asynchronous copies, so loads are in flight while a row
// is reduced and written. Weight and bias are read once a block and stay in registers.
//
// Data's way: global -> shared (cp.async, own slots) -> float -> reduction -> shared again -> float ->
// global. Every thread copies, reads and rewrites only its own slots, so the ring needs no barrier: a
// thread's own cp.async.wait_group orders it, and a slot is refilled only after the thread has consumed it.
// One barrier a reduction.
#pragma once

#include "norm/row.cuh"

namespace hone::norm::persistent_rows {

inline constexpr int threads = Tuned::threads;
inline constexpr int lanes = Tuned::lanes;
inline constexpr int groups = threads / lanes;
inline constexpr int stages = Tuned::stages;
inline constexpr StoreHint store_hint = static_cast<StoreHint>(Tuned::store_hint);

using RowLayout = Layout<lanes, static_cast<int>(Tuned::vector)>;
using RowParameters = Parameters<Statistic, RowLayout, true>;
using Slot = Packet<Element, RowLayout::vector>;
using Reducer = GroupReducer<threads, lanes>;

/// Packets of one row as they lie in a stage: packet p of lane l at p * lanes + l, neighbouring lanes side by
/// side.
inline constexpr int row_slots = RowLayout::packets * lanes;
inline constexpr int tensors_per_row = has_residual ? 2 : 1;

/// A row in shared memory, seen by one thread.
struct Row {
    using layout = RowLayout;
    static constexpr int unroll = RowLayout::packets;

    __device__ bool inside(int packet) const { return RowLayout::inside(lane, packet); }
    __device__ Slot& slot(int packet) const { return slots[packet * lanes + lane]; }
    __device__ void values(int packet, float (&out)[RowLayout::vector]) const { unpack(slot(packet), out); }
    __device__ void weights(int packet, float (&out)[RowLayout::vector]) const {
        parameters->weights(packet, out);
    }
    __device__ void biases(int packet, float (&out)[RowLayout::vector]) const {
        parameters->biases(packet, out);
    }

    __device__ void copy(const Element* from, Slot* to) const {
        for_each_packet(*this, [&](int packet) {
            copy_async<Slot::bytes>(&to[packet * lanes + lane], from + RowLayout::column(lane, packet));
        });
    }
    __device__ void fetch(const Tensors& tensors, int64 index) const {
        if (!present) return;
        copy(tensors.x + index * tensors.x_stride, slots);
        if constexpr (has_residual)
            copy(tensors.residual + index * tensors.residual_stride, slots + row_slots);
    }
    /// s = x + residual into the x slots and `sum`.
    __device__ void add_residual(const Tensors& tensors, int64 index) const {
        if (!present) return;
        for_each_packet(*this, [&](int packet) {
            const Slot total = add(slot(packet), slots[row_slots + packet * lanes + lane]);
            slot(packet) = total;
            store_packet<store_hint>(
                tensors.sum + index * tensors.sum_stride + RowLayout::column(lane, packet), total);
        });
    }

    Slot* slots;
    const RowParameters* parameters;
    int lane;
    bool present;
};

__device__ inline void run(const Tensors& tensors) {
    extern __shared__ __align__(16) unsigned char ring[];
    __shared__ Reducer::Scratch scratch;
    if constexpr (Tuned::programmatic != 0) {
        release_successor();
        wait_for_predecessor();
    }
    const int group = threadIdx.x / lanes;
    const int64 first = static_cast<int64>(blockIdx.x) * groups + group;
    const int64 step = static_cast<int64>(gridDim.x) * groups;
    // Rounds are the same for all groups of a block: every thread must join each reduction's barrier.
    const int rounds =
        static_cast<int>((tensors.rows - static_cast<int64>(blockIdx.x) * groups + step - 1) / step);

    RowParameters parameters;
    const auto row_of = [&](int round) {
        Slot* stage =
            reinterpret_cast<Slot*>(ring) + (round % stages * groups + group) * (row_slots * tensors_per_row);
        return Row{stage, &parameters, static_cast<int>(threadIdx.x % lanes),
                   first + round * step < tensors.rows};
    };
    const auto fetch = [&](int round) {
        if (round < rounds) row_of(round).fetch(tensors, first + round * step);
        commit_copies();
    };
    for (int stage = 0; stage < stages - 1; ++stage) fetch(stage);
    parameters.load(tensors, threadIdx.x % lanes);

    Reducer reducer(scratch);
    for (int round = 0; round < rounds; ++round) {
        fetch(round + stages - 1);
        wait_for_copies<stages - 1>();
        const Row row = row_of(round);
        const int64 index = first + round * step;
        if constexpr (has_residual) row.add_residual(tensors, index);
        const Scaling scaling = Statistic::scaling(row, reducer, tensors.epsilon);
        write_row<Statistic, store_hint>(row, tensors, index, scaling);
    }
}

}  // namespace hone::norm::persistent_rows

extern "C" __global__ void __launch_bounds__(hone::norm::persistent_rows::threads, Tuned::blocks_per_sm)
    norm_persistent_rows(HONE_PARAMETERS(norm_persistent_rows)) {
    const hone::norm::Tensors tensors{HONE_ARGUMENTS(norm_persistent_rows)};
    hone::norm::persistent_rows::run(tensors);
}
