// The producers of variant wgmma_w16 (kernel.cu): one thread of each warp of their warpgroup. Warp 0
// announces a stage's bytes and copies x, as linear's producer; the others copy the weights, each its share.
// A stage takes two or three copies of weights for each 64 rows, and one thread issues a copy in some 40
// cycles: alone it would need as long for a stage as its products take, and ask last for x, which is most of
// the bytes.
//
// Weights do not depend on the kernel before, and their copies wait for free stages alone: so they fill the
// ring while that kernel ends. Their bytes may come before they are announced.
#pragma once

#include "quantized_linear/wgmma_w16/weights.cuh"

namespace hone::quantized_linear::w16 {

/// Whether warps share the copies. With a gate one thread issues all: which of the two weights a warp's block
/// is of would be looked up in local memory, and tuned calls took 4 to 7 % longer.
inline constexpr bool share_copies = products == 1;
/// One block of rows: its codes are a share, and what belongs to them; of more blocks each is one.
inline constexpr bool shares_a_block = tile_blocks == 1 && held.groups() > 0;
/// Warps that copy weights.
inline constexpr int weight_warps = shares_a_block ? 2 : tile_blocks < 3 ? tile_blocks : 3;

/// Stands in for the weights of warp 0.
struct WeightsOfOthers {
    __device__ void load(uint32, const gemm::Work&, int, int) const {}
};

/// What warp 1 + share copies.
class WeightShare {
  public:
    __device__ WeightShare(uint32 shared, const PackedWeights& weights, int share)
        : shared_(shared), weights_(weights), share_(share) {}

    __device__ void run(const gemm::Schedule& schedule) const {
        gemm::Ring ring;
        const int count = schedule.count();
        for (int i = 0; i < count; ++i) {
            const gemm::Work tile = schedule.work(i);
            for (int k = 0; k < tile.k_count; ++k, ring.advance()) {
                barrier_wait(gemm::empty_barrier(shared_, ring.stage), ring.parity ^ 1);
                load(tile, tile.first_k + k, ring.stage);
            }
        }
    }

  private:
    __device__ void load(const gemm::Work& tile, int k, int stage) const {
        if constexpr (shares_a_block) {
            if (share_ == 0)
                weights_.load_codes(shared_, tile, k, stage, 0);
            else
                weights_.load_rest(shared_, tile, k, stage, 0);
        } else {
#pragma unroll
            for (int first = 0; first < tile_blocks; first += weight_warps) {
                const int block = first + share_;
                if (tile_blocks % weight_warps != 0 && block >= tile_blocks) continue;
                weights_.load_codes(shared_, tile, k, stage, block);
                weights_.load_rest(shared_, tile, k, stage, block);
            }
        }
    }

    uint32 shared_;
    const PackedWeights& weights_;
    int share_;
};

}  // namespace hone::quantized_linear::w16
