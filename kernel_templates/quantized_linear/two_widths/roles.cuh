// The roles of variant two_widths's warpgroups (kernel.cu): those of wgmma_w16 (wgmma_w16/roles.cuh), whose
// consumers multiply wide tiles and then narrow ones. A narrow tile has the first columns of the sums, of the
// ring's stages and of what is staged; maps of its own keep what else stands there from memory.
#pragma once

#include "device/elect.cuh"
#include "linear/wgmma/product.cuh"
#include "quantized_linear/two_widths/producers.cuh"
#include "quantized_linear/wgmma_w16/product.cuh"

namespace hone::quantized_linear::widths {

inline constexpr w16::Registers registers = w16::registers_of(gemm::geometry);
static_assert(gemm::geometry.staged == 1 && !gemm::ping_pong && !gemm::tail_split && gemm::cluster_k == 1,
              "warpgroups share whole tiles, whose results leave by maps");

class Consumer {
  public:
    __device__ Consumer(uint32 shared, const Maps& maps, const linear::Results& results,
                        const Tensors& tensors, int warpgroup)
        : shared_(shared), maps_(maps), results_(results), tensors_(tensors), warpgroup_(warpgroup) {}

    __device__ void run(const Rounds& rounds) {
        const int wide = rounds.wide_count();
        multiply<gemm::tile_n>(rounds, 0, wide, maps_.wide);
        multiply<last_columns>(rounds, wide, rounds.count(), maps_.narrow);
        gemm::Writer(shared_, maps_.narrow.result, results_, warpgroup_).finish();
    }

  private:
    /// Tiles from the first to the end, of so many columns each.
    template <int columns>
    __device__ void multiply(const Rounds& rounds, int first, int end, const gemm::Maps& maps) {
        const w16::WidenedProduct<columns> product(tensors_);
        gemm::Writer writer(shared_, maps.result, results_, warpgroup_);
        for (int i = first; i < end; ++i) {
            const gemm::Work tile = rounds.work(i);
            gemm::Sums sums;
            product.multiply(shared_, warpgroup_, tile, ring_, sums, [] {});
            writer.store(sums, tile);
        }
    }

    uint32 shared_;
    const Maps& maps_;
    const linear::Results& results_;
    const Tensors& tensors_;
    int warpgroup_;
    gemm::Ring ring_;
};

/// As w16::run.
__device__ inline void run(const Maps& maps, const linear::Results& results, const Tensors& tensors) {
    extern __shared__ uint8 memory[];
    constexpr uint32 below = gemm::Geometry::alignment - 1;
    const uint32 shared = (shared_address(memory) + below) & ~below;
    const int warp = __shfl_sync(0xffffffffu, threadIdx.x / 32, 0);
    const Rounds rounds(gemm::tiling, last_columns, static_cast<int>(Tuned::last_rounds), results.tokens,
                        gridDim.x, blockIdx.x);

    if (threadIdx.x == 0) gemm::prepare(shared, maps.wide, results.tokens);
    __syncthreads();
    if constexpr (gemm::programmatic && !gemm::releases_late) release_successor();

    if (warp < 4) {
        if constexpr (registers.move()) release_registers<registers.producer>();
        const w16::PackedWeights weights(tensors);
        if (warp == 0) {
            if (elect()) XShare(shared, maps, results.tokens).run(rounds);
        } else if (warp <= w16::weight_warps) {
            if (elect()) WeightShare(shared, weights, warp - 1).run(rounds);
        }
        __syncwarp();
    } else {
        if constexpr (registers.move()) claim_registers<registers.consumer>();
        if constexpr (gemm::programmatic) wait_for_predecessor();
        Consumer(shared, maps, results, tensors, warp / 4 - 1).run(rounds);
    }
}

}  // namespace hone::quantized_linear::widths
