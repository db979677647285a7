// Norm, variant cluster_row: a cluster of `cluster` blocks shares one row, for hidden sizes at which one
// block would run out of registers or of loads in flight, and for few rows, where it brings more
// multiprocessors to work.
//
// Data's way: global -> registers of all blocks -> partial results of each block -> every block's shared
// memory (distributed shared memory) -> registers -> global. Barriers: the cluster's arrive at the start says
// that a block runs and its shared memory may be written, awaited before the first remote store; one cluster
// barrier a reduction makes the partials visible. Each reduction has slots of its own, so none is overwritten
// while a slower block reads; no remote access follows the last barrier, so blocks may exit freely.
#pragma once

#include "norm/row.cuh"

namespace hone::norm::cluster_row {

inline constexpr int threads = Tuned::threads;
inline constexpr int cluster = Tuned::cluster;
inline constexpr RowLoad load_hint = static_cast<RowLoad>(Tuned::load_hint);
inline constexpr StoreHint store_hint = static_cast<StoreHint>(Tuned::store_hint);

using RowLayout = Layout<cluster * threads, static_cast<int>(Tuned::vector)>;
using RowParameters = Parameters<Statistic, RowLayout, Tuned::early_weights != 0>;
using Row = RegisterRow<RowLayout, RowParameters>;
using BlockReducer = GroupReducer<threads, threads>;

class ClusterReducer {
  public:
    /// LayerNorm with quantized output needs three reductions, each over at most two values.
    struct Scratch {
        BlockReducer::Scratch block;
        float partials[3][2][cluster];
    };

    __device__ explicit ClusterReducer(Scratch& scratch) : scratch_(scratch), block_(scratch.block) {}

    template <class Op>
    __device__ float reduce(float value) {
        value = block_.template reduce<Op>(value);
        float(&slots)[2][cluster] = scratch_.partials[used_++];
        await_start();
        if (threadIdx.x < cluster) store_remote(&slots[0][cluster_rank()], threadIdx.x, value);
        cluster_arrive();
        cluster_wait();
        return combine_partials<Op, cluster>(slots[0]);
    }

    template <class OpA, class OpB>
    __device__ void reduce(float& a, float& b) {
        block_.template reduce<OpA, OpB>(a, b);
        float(&slots)[2][cluster] = scratch_.partials[used_++];
        await_start();
        if (threadIdx.x < cluster) {
            store_remote(&slots[0][cluster_rank()], threadIdx.x, a);
            store_remote(&slots[1][cluster_rank()], threadIdx.x, b);
        }
        cluster_arrive();
        cluster_wait();
        a = combine_partials<OpA, cluster>(slots[0]);
        b = combine_partials<OpB, cluster>(slots[1]);
    }

  private:
    __device__ void await_start() const {
        if (used_ == 1) cluster_wait();
    }

    Scratch& scratch_;
    BlockReducer block_;
    int used_ = 0;
};

__device__ inline void run(const Tensors& tensors) {
    __shared__ ClusterReducer::Scratch scratch;
    cluster_arrive();
    if constexpr (Tuned::programmatic != 0) {
        release_successor();
        wait_for_predecessor();
    }
    const int64 index = blockIdx.x / cluster;
    RowParameters parameters;
    Row row;
    row.parameters = &parameters;
    row.lane = static_cast<int>(cluster_rank()) * threads + threadIdx.x;
    row.template read<load_hint>(tensors, index);
    parameters.load(tensors, row.lane);
    if constexpr (has_residual) row.template add_residual<store_hint>(tensors, index);

    ClusterReducer reducer(scratch);
    const Scaling scaling = Statistic::scaling(row, reducer, tensors.epsilon);
    write_row<Statistic, store_hint>(row, tensors, index, scaling);
}

}  // namespace hone::norm::cluster_row

extern "C" __global__ void __launch_bounds__(hone::norm::cluster_row::threads)
    norm_cluster_row(HONE_PARAMETERS(norm_cluster_row)) {
    const hone::norm::Tensors tensors{HONE_ARGUMENTS(norm_cluster_row)};
    hone::norm::cluster_row::run(tensors);
}
