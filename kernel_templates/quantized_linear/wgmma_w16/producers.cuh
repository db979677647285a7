// The producers of variant wgmma_w16 (kernel.cu): one thread of each warp of their warpgroup. Warp 0
// announces a stage's bytes and copies x, as linear's producer; the others copy the weights, each its share.
// A stage takes two or three copies of weights for each 64 rows, and one thread issues a copy in some 40
// cycles: alone it would need as long for a stage as its products take, and ask last for x, which is most of
// the bytes.
//
// Two stages that are multiplied together (paired.cuh) share copies of codes, which stand with the first.
//
// Weights do not depend on the kernel before, and their copies wait for free stages alone: so they fill the
// ring while that kernel ends. Their bytes may come before they are announced.
#pragma once

#include "quantized_linear/wgmma_w16/weights.cuh"

namespace hone::quantized_linear::w16 {

/// One block of rows: its codes are a share, and what belongs to them; of more blocks each is one.
inline constexpr bool shares_a_block = tile_blocks == 1 && held.groups() > 0;
/// Warps that copy weights.
inline constexpr int weight_warps = shares_a_block ? 2 : tile_blocks < 3 ? tile_blocks : 3;

/// What warp 0 copies.
class XShare {
  public:
    __device__ XShare(uint32 shared, const gemm::Maps& maps, int tokens)
        : shared_(shared), maps_(maps), tokens_(tokens) {}

    __device__ void run(const gemm::Schedule& schedule) const {
        if constexpr (gemm::programmatic) {
            wait_for_predecessor();
            fence_async_proxy_global();
        }
        gemm::Ring ring;
        const int count = schedule.count();
        for (int i = 0; i < count; ++i) {
            const gemm::Work tile = schedule.work(i);
            // Of a last tile that has fewer tokens no others are asked for (linear/wgmma/producer.cuh).
            const int rows = min(tokens_ - tile.column, gemm::tile_n);
            const TensorMap& map = rows < gemm::tile_n ? maps_.x_rest : maps_.x;
            for (int k = 0; k < tile.k_count; ++k, ring.advance()) {
                barrier_wait(gemm::empty_barrier(shared_, ring.stage), ring.parity ^ 1);
                barrier_arrive_expecting(gemm::full_barrier(shared_, ring.stage),
                                         rows * gemm::operands.right_pitch + weight_bytes(ring.stage));
                gemm::load_rows<false, gemm::x_hint>(shared_, map, 0, tile.first_k + k, tile.column,
                                                     ring.stage);
            }
        }
        if constexpr (gemm::releases_late) release_successor();
    }

  private:
    /// What the other warps copy.
    __device__ static int weight_bytes(int stage) {
        const bool first = stage % code_stages == 0;
        return (first ? code_stages * gemm::geometry.left_bytes() : 0) +
               (first || !share_scales ? gemm::geometry.extra_bytes() : 0);
    }

    uint32 shared_;
    const gemm::Maps& maps_;
    int tokens_;
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
            for (int k = 0; k < tile.k_count; k += code_stages) {
#pragma unroll
                for (int j = 0; j < code_stages; ++j)
                    barrier_wait(gemm::empty_barrier(shared_, ring.stage + j), ring.parity ^ 1);
                load(tile, tile.first_k + k, ring.stage);
#pragma unroll
                for (int j = 0; j < code_stages; ++j) ring.advance();
            }
        }
    }

  private:
    __device__ void load(const gemm::Work& tile, int k, int stage) const {
        if constexpr (shares_a_block) {
            if (share_ == 0)
                weights_.load_codes(shared_, tile, k, stage, 0);
            else
                load_rest(tile, k, stage, 0);
        } else if constexpr (products == 2) {
            // One block of each. Which weight a block is of has to be known here, else it would be looked up
            // in local memory.
            if (share_ == 0)
                load_block(tile, k, stage, 0);
            else
                load_block(tile, k, stage, 1);
        } else {
#pragma unroll
            for (int first = 0; first < tile_blocks; first += weight_warps) {
                const int block = first + share_;
                if (tile_blocks % weight_warps != 0 && block >= tile_blocks) continue;
                load_block(tile, k, stage, block);
            }
        }
    }
    __device__ void load_block(const gemm::Work& tile, int k, int stage, int block) const {
        weights_.load_codes(shared_, tile, k, stage, block);
        load_rest(tile, k, stage, block);
    }
    __device__ void load_rest(const gemm::Work& tile, int k, int stage, int block) const {
#pragma unroll
        for (int j = 0; j < (share_scales ? 1 : code_stages); ++j)
            weights_.load_rest(shared_, tile, k + j, stage + j, block);
    }

    uint32 shared_;
    const PackedWeights& weights_;
    int share_;
};

}  // namespace hone::quantized_linear::w16
