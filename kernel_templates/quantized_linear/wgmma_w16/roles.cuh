// The roles of variant wgmma_w16's warpgroups (kernel.cu): those of linear's product
// (linear/wgmma/product.cuh, which says how they work together), but for two things.
//
// A stage takes many copies here, so all warps of the producers' warpgroup issue them, but for most gates'
// (weights.cuh), by threads that are elected (device/elect.cuh).
//
// And registers are moved from the producer to the consumers whatever their number, and however many blocks
// share a multiprocessor: widening needs them.
#pragma once

#include "device/elect.cuh"
#include "linear/wgmma/product.cuh"
#include "quantized_linear/wgmma_w16/producers.cuh"
#include "quantized_linear/wgmma_w16/stage.cuh"
#include "quantized_linear/wgmma_w16/units.cuh"

namespace hone::quantized_linear::w16 {

namespace gemm = linear::gemm;

inline constexpr Registers registers = registers_of(gemm::geometry);

/// As linear::gemm::run.
template <class Product>
__device__ inline void run(const gemm::Maps& maps, const linear::Results& results,
                           const PackedWeights& weights, const Product& product) {
    extern __shared__ uint8 memory[];
    constexpr uint32 below = gemm::Geometry::alignment - 1;
    const uint32 shared = (shared_address(memory) + below) & ~below;
    const int rank =
        gemm::cluster_k == 1 && !gemm::geometry.tail_pairs ? 0 : static_cast<int>(cluster_rank());
    const int warp = __shfl_sync(0xffffffffu, threadIdx.x / 32, 0);
    const gemm::Schedule schedule(gemm::tiling, results.tokens, gridDim.x / gemm::cluster_k,
                                  blockIdx.x / gemm::cluster_k, rank);

    if (threadIdx.x == 0) gemm::prepare(shared, maps, results.tokens);
    __syncthreads();
    if constexpr (gemm::geometry.meets_early()) cluster_arrive();
    if constexpr (gemm::programmatic && !gemm::releases_late) release_successor();

    if (warp < 4) {
        if constexpr (registers.move()) release_registers<registers.producer>();
        if constexpr (!share_copies) {
            if (warp == 0 && elect())
                gemm::Producer<PackedWeights>(shared, maps, weights, results.tokens).run(schedule);
        } else if (warp == 0) {
            if (elect()) XShare(shared, maps, results.tokens).run(schedule);
        } else if (warp <= weight_warps) {
            if (elect()) WeightShare(shared, weights, warp - 1).run(schedule);
        }
        __syncwarp();
        if constexpr (gemm::geometry.meets_early()) {
            cluster_wait();
        } else if constexpr (gemm::cluster_k > 1) {  // the two meetings of Writer::store_shared
            gemm::meet_cluster();
            gemm::meet_cluster();
        }
    } else {
        if constexpr (registers.move()) claim_registers<registers.consumer>();
        if constexpr (gemm::programmatic) wait_for_predecessor();
        begin_turns(warp / 4 - 1);
        gemm::Consumer<Product>(shared, maps, results, product, warp / 4 - 1).run(schedule, rank);
        end_turns(warp / 4 - 1);
    }
}

}  // namespace hone::quantized_linear::w16
