// The products of variant wgmma_w16 (wgmma_w16.cu). A warpgroup works unit by unit: the four products of one
// of its blocks of 64 rows with a stage of x. While the tensor cores work on a unit its threads make the next
// one's fragments, in the other of two sets of registers; that one may belong to the next stage, which
// therefore is waited for before.
//
// No branch and no loop stands between products and the wait for them: registers of a left operand would be
// given to others (NVRTC 13.0). So a stage's units are unrolled, and a stage ends with no product under way:
// the other warpgroup's keep the tensor cores busy.
#pragma once

#include "device/wgmma_left.cuh"
#include "linear/gemm_consumer.cuh"
#include "quantized_linear/wgmma_w16_fragments.cuh"

namespace hone::quantized_linear::w16 {

/// As linear::gemm::ElementProduct.
class WidenedProduct {
  public:
    __device__ explicit WidenedProduct(const Tensors& tensors) : tensors_(tensors) {}

    template <class LastIssued>
    __device__ void multiply(uint32 shared, int warpgroup, const gemm::Work& tile, gemm::Ring& ring,
                             gemm::Sums& sums, LastIssued last_issued) const {
        const RowFactors factors(tensors_, tile, warpgroup);
        Pass pass{shared, warpgroup, tile.k_count, ring, sums, factors};
#pragma unroll
        for (int b = 0; b < gemm::row_blocks; ++b) fence_accumulators(sums[b]);
        Fragments even, odd;
        pass.begin(even);
        for (int k = 0; k < tile.k_count; ++k) {
            pass.stage(k, even, odd);
            if constexpr (gemm::row_blocks % 2 != 0) {
                if (++k < tile.k_count) pass.stage(k, odd, even);
            }
        }
        last_issued();
#pragma unroll
        for (int b = 0; b < gemm::row_blocks; ++b) fence_accumulators(sums[b]);
        factors.scale(sums);
    }

  private:
    struct Pass {
        uint32 shared;
        int warpgroup;
        int k_count;
        gemm::Ring& ring;
        gemm::Sums& sums;
        const RowFactors& factors;

        __device__ int block(int b) const { return gemm::block_row(warpgroup, b) / block_rows; }
        __device__ Codes codes(int stage, int b) const {
            return Codes(shared, stage, block(b), factors.zeros(b));
        }

        /// The first unit's fragments.
        __device__ void begin(Fragments& fragments) {
            barrier_wait(gemm::full_barrier(shared, ring.stage), ring.parity);
            codes(ring.stage, 0).widen(fragments);
        }

        /// Stage k. `first` holds its first unit's fragments, and the last one of the two the next stage's:
        /// with an odd number of units that is `second`.
        __device__ void stage(int k, Fragments& first, Fragments& second) {
            const int current = ring.stage;
            const uint64 right =
                panel_descriptor(shared + gemm::geometry.right_at() + current * gemm::geometry.right_bytes());
            ring.advance();
            int next = current;  // behind the last stage: fragments that nobody uses
            if (k + 1 < k_count) {
                next = ring.stage;
                barrier_wait(gemm::full_barrier(shared, next), ring.parity);
            }
#pragma unroll
            for (int b = 0; b < gemm::row_blocks; ++b) {
                Fragments& now = b % 2 == 0 ? first : second;
                Fragments& then = b % 2 == 0 ? second : first;
                const bool last = b + 1 == gemm::row_blocks;
                multiply_unit(now, right, sums[b], k);
                const Codes coming = codes(last ? next : current, last ? 0 : b + 1);
                if (b > 0) wgmma_wait<1>();
                coming.widen(then);
                fence_fragments(then.words);
            }
            wgmma_wait<0>();
            gemm::release_stage(shared, current);
        }

        __device__ static void multiply_unit(Fragments& left, uint64 right, float (&sums)[gemm::tile_n / 2],
                                             int k) {
            fence_fragments(left.words);
            wgmma_fence();
#pragma unroll
            for (int step = 0; step < steps; ++step)
                WgmmaLeft<Element, gemm::tile_n, false>::multiply(
                    sums, left.words + 4 * step, advance_descriptor(right, step * 32), k | step);
            wgmma_commit();
        }
    };

    const Tensors& tensors_;
};

}  // namespace hone::quantized_linear::w16
