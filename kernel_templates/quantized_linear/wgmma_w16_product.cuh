// The products of variant wgmma_w16 (wgmma_w16.cu). A warpgroup works unit by unit: the four products, of 16
// columns each, of one of its blocks of 64 rows with a stage of x.
//
// Between two products the threads make a fragment, that of the product `ahead` steps further, also across
// units and stages: so the tensor cores work on one while the next but one is made, even where a product
// whose left operand comes from registers holds up the warp that issues it until the one before has begun.
// There are four fragments, one for each step of a unit; one is made anew when the product that read it is
// over.
//
// No branch and no loop stands between products and the wait for them: registers of a left operand would be
// given to others (NVRTC 13.0). So the units of some stages are unrolled, and only behind them no product is
// under way: the other warpgroup's, or block's, keep the tensor cores busy.
#pragma once

#include "device/wgmma_left.cuh"
#include "linear/gemm_consumer.cuh"
#include "quantized_linear/wgmma_w16_fragments.cuh"

namespace hone::quantized_linear::w16 {

/// Stages whose products have no pause between them.
inline constexpr int together = static_cast<int>(Tuned::stages_together);
static_assert(gemm::stages >= together + 2, "the next ones come while these are worked on");

/// Whether that phase of a barrier is over; blocks nobody (device/mbarrier.cuh).
__device__ inline uint32 barrier_test(uint32 barrier, uint32 parity) {
    uint32 done;
    asm volatile(
        "{\n.reg .pred done;\n"
        "mbarrier.test_wait.parity.shared::cta.b64 done, [%1], %2;\n"
        "selp.u32 %0, 1, 0, done;\n}"
        : "=r"(done)
        : "r"(barrier), "r"(parity)
        : "memory");
    return done;
}

/// As gemm::release_stage, without a branch.
__device__ inline void release_beside_products(uint32 shared, int stage) {
    asm volatile(
        "{\n.reg .pred leads;\nsetp.eq.u32 leads, %1, 0;\n"
        "@leads mbarrier.arrive.shared::cta.b64 _, [%0];\n}" ::"r"(gemm::empty_barrier(shared, stage)),
        "r"(threadIdx.x % 32)
        : "memory");
}

/// Products that are under way, or about to be, between the one that is issued and the one whose fragment is
/// made.
inline constexpr int ahead = 2;

/// A store that never happens, of something that the fragments of the first `ahead` steps are needed for:
/// ptxas moves no store across the wait for products, as it would move the widening.
__device__ inline void pin(uint32 shared, const Fragments& fragments) {
    uint32 all = 0;
#pragma unroll
    for (int i = 0; i < 4 * ahead; ++i) all |= fragments.words[i / 4][i % 4];
    asm volatile(
        "{\n.reg .pred never;\nsetp.eq.u32 never, %0, 0;\n@never st.shared.u32 [%0], %1;\n}" ::"r"(shared),
        "r"(all)
        : "memory");
}

/// As linear::gemm::ElementProduct.
class WidenedProduct {
  public:
    __device__ explicit WidenedProduct(const Tensors& tensors) : tensors_(tensors) {}

    template <class LastIssued>
    __device__ void multiply(uint32 shared, int warpgroup, const gemm::Work& tile, gemm::Ring& ring,
                             gemm::Sums& sums, LastIssued last_issued) const {
        // Zeros, not a first product that sets the sums: with tail_split ptxas would define them anew between
        // products, and let each wait for the one before (C7515).
        const RowFactors factors(tensors_, tile, warpgroup);
        Pass pass{shared, warpgroup, tile.k_count, ring, sums, factors, {}};
#pragma unroll
        for (int b = 0; b < gemm::row_blocks; ++b) {
#pragma unroll
            for (int i = 0; i < gemm::tile_n / 2; ++i) sums[b][i] = 0.0f;
            fence_accumulators(sums[b]);
        }
        pass.begin();
        int k = 0;
        if constexpr (together > 1) {
            for (; k + together <= tile.k_count; k += together) pass.template stages<together>(k);
        }
        for (; k < tile.k_count; ++k) pass.template stages<1>(k);
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
        Fragments fragments;    ///< between stages(): those of the first `ahead` steps
        bool are_full = false;  ///< the `together` stages behind ring's

        __device__ Codes codes_of(int stage, int b) const {
            return Codes(shared, stage, gemm::block_row(warpgroup, b) / block_rows, factors.zeros(b));
        }

        __device__ void begin() {
            barrier_wait(gemm::full_barrier(shared, ring.stage), ring.parity);
            const Codes codes = codes_of(ring.stage, 0);
#pragma unroll
            for (int step = 0; step < ahead; ++step) codes.widen(step, fragments);
        }

        /// `count` stages from the k-th on, and the first fragments of what is behind them: behind the tile's
        /// last stage they are made of anything, and nobody uses them.
        template <int count>
        __device__ void stages(int k) {
            constexpr int units = count * gemm::row_blocks;
            gemm::Ring places[count + 1];
            take<count>(k, places);
            Codes codes = codes_of(places[0].stage, 0);
#pragma unroll
            for (int unit = 0; unit < units; ++unit) {
                const int i = unit / gemm::row_blocks;
                const int b = unit % gemm::row_blocks;
                if (unit + 1 == units) are_full = test_next();
#pragma unroll
                for (int step = 0; step < steps; ++step) {
                    multiply(step, places[i].stage, sums[b]);
                    wgmma_wait<steps - ahead>();
                    if (step == steps - ahead - 1 && b == 0 && i > 0)
                        release_beside_products(shared, places[i - 1].stage);
                    if (step + ahead == steps)
                        codes = codes_of(places[(unit + 1) / gemm::row_blocks].stage,
                                         (unit + 1) % gemm::row_blocks);
                    codes.widen((step + ahead) % steps, fragments);
                    fence_fragments(fragments.words[(step + ahead) % steps]);
                }
            }
            pin(shared, fragments);
            wgmma_wait<0>();
#pragma unroll
            for (int b = 0; b < gemm::row_blocks; ++b) fence_accumulators(sums[b]);
            gemm::release_stage(shared, places[count - 1].stage);
        }

        /// Waits until those stages, and the one behind them, are full; ring goes on to that one.
        template <int count>
        __device__ void take(int k, gemm::Ring (&places)[count + 1]) {
            places[0] = ring;
#pragma unroll
            for (int i = 1; i <= count; ++i) {
                ring.advance();
                places[i] = ring;
                if (!are_full && (i < count || k + count < k_count))
                    barrier_wait(gemm::full_barrier(shared, ring.stage), ring.parity);
            }
        }
        /// Beside products there is no waiting, but time to see whether there will be need to.
        __device__ bool test_next() const {
            uint32 full = 1;
            gemm::Ring place = ring;
#pragma unroll
            for (int i = 0; i < together; ++i) {
                place.advance();
                full &= barrier_test(gemm::full_barrier(shared, place.stage), place.parity);
            }
            return full != 0;
        }

        /// The product of one step of a unit.
        __device__ void multiply(int step, int stage, float (&to)[gemm::tile_n / 2]) {
            const uint64 right =
                panel_descriptor(shared + gemm::geometry.right_at() + stage * gemm::geometry.right_bytes());
            uint32(&left)[4] = fragments.words[step];
            fence_fragments(left);
            wgmma_fence();
            WgmmaLeft<Element, gemm::tile_n, false>::multiply(to, left, advance_descriptor(right, step * 32),
                                                              1);
            wgmma_commit();
        }
    };

    const Tensors& tensors_;
};

}  // namespace hone::quantized_linear::w16
