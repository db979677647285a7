// The producers of variant two_widths (kernel.cu), as those of wgmma_w16 (wgmma_w16/producers.cuh, which says
// how they share the copies): the ring goes on from wide tiles to narrow ones.
#pragma once

#include "quantized_linear/two_widths/rounds.cuh"
#include "quantized_linear/wgmma_w16/producers.cuh"

namespace hone::quantized_linear::widths {

/// Tokens of a narrow tile.
inline constexpr int last_columns = static_cast<int>(Tuned::last_n);
static_assert(last_columns % 8 == 0 && last_columns < gemm::tile_n, "wgmma's n, fewer than a wide tile's");
static_assert(w16::share_copies && !w16::shares_a_block, "no gate, and tiles of several blocks of rows");

/// Maps of wide tiles and of narrow ones: boxes of x and of results have as many tokens.
struct Maps {
    gemm::Maps wide;
    gemm::Maps narrow;
};

/// What warp 0 copies.
class XShare {
  public:
    __device__ XShare(uint32 shared, const Maps& maps, int tokens)
        : shared_(shared), maps_(maps), tokens_(tokens) {}

    __device__ void run(const Rounds& rounds) const {
        if constexpr (gemm::programmatic) {
            wait_for_predecessor();
            fence_async_proxy_global();
        }
        gemm::Ring ring;
        const int wide = rounds.wide_count();
        const int count = rounds.count();
        for (int i = 0; i < wide; ++i) load<gemm::tile_n>(rounds.work(i), maps_.wide, ring);
        for (int i = wide; i < count; ++i) load<last_columns>(rounds.work(i), maps_.narrow, ring);
        if constexpr (gemm::releases_late) release_successor();
    }

  private:
    template <int columns>
    __device__ void load(const gemm::Work& tile, const gemm::Maps& maps, gemm::Ring& ring) const {
        // Of a last tile that has fewer tokens no others are asked for (linear/wgmma/producer.cuh).
        const int rows = min(tokens_ - tile.column, columns);
        const TensorMap& map = rows < columns ? maps.x_rest : maps.x;
        for (int k = 0; k < tile.k_count; ++k, ring.advance()) {
            barrier_wait(gemm::empty_barrier(shared_, ring.stage), ring.parity ^ 1);
            barrier_arrive_expecting(gemm::full_barrier(shared_, ring.stage),
                                     rows * gemm::operands.right_pitch + weight_bytes(ring.stage));
            gemm::load_rows<false, gemm::x_hint>(shared_, map, 0, k, tile.column, ring.stage);
        }
    }
    /// What the other warps copy.
    __device__ static int weight_bytes(int stage) {
        const bool first = stage % w16::code_stages == 0;
        return (first ? w16::code_stages * gemm::geometry.left_bytes() : 0) +
               (first || !w16::share_scales ? gemm::geometry.extra_bytes() : 0);
    }

    uint32 shared_;
    const Maps& maps_;
    int tokens_;
};

/// What warp 1 + share copies.
class WeightShare {
  public:
    __device__ WeightShare(uint32 shared, const w16::PackedWeights& weights, int share)
        : shared_(shared), weights_(weights), share_(share) {}

    __device__ void run(const Rounds& rounds) const {
        gemm::Ring ring;
        const int count = rounds.count();
        for (int i = 0; i < count; ++i) {
            const gemm::Work tile = rounds.work(i);
            for (int k = 0; k < tile.k_count; k += w16::code_stages) {
#pragma unroll
                for (int j = 0; j < w16::code_stages; ++j)
                    barrier_wait(gemm::empty_barrier(shared_, ring.stage + j), ring.parity ^ 1);
                load(tile, k, ring.stage);
#pragma unroll
                for (int j = 0; j < w16::code_stages; ++j) ring.advance();
            }
        }
    }

  private:
    __device__ void load(const gemm::Work& tile, int k, int stage) const {
#pragma unroll
        for (int first = 0; first < w16::tile_blocks; first += w16::weight_warps) {
            const int block = first + share_;
            if (w16::tile_blocks % w16::weight_warps != 0 && block >= w16::tile_blocks) continue;
            weights_.load_codes(shared_, tile, k, stage, block);
#pragma unroll
            for (int j = 0; j < (w16::share_scales ? 1 : w16::code_stages); ++j)
                weights_.load_rest(shared_, tile, k + j, stage + j, block);
        }
    }

    uint32 shared_;
    const w16::PackedWeights& weights_;
    int share_;
};

}  // namespace hone::quantized_linear::widths
