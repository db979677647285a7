// The products of variant wgmma_w16 (kernel.cu). A warpgroup works unit by unit: the four products, of 16
// columns each, of one of its blocks of 64 rows with a stage of x.
//
// Products are issued in pairs, which saves two fences and two waits a unit. Beside a pair's products the
// threads make the fragments of the next pair, also across units and stages: a product whose left operand
// comes from registers holds up the warp that issues it until the one before has begun, and nothing that the
// tensor cores could do meanwhile waits for it. The fragments of a pair are made anew when its products are
// over.
//
// No branch and no loop stands between products and the wait for them: registers of a left operand would be
// given to others (NVRTC 13.0). So the units of some stages are unrolled, and only behind them no product is
// under way: the other warpgroup's, or block's, keep the tensor cores busy.
#pragma once

#include "device/wgmma_left.cuh"
#include "linear/wgmma/consumer.cuh"
#include "quantized_linear/wgmma_w16/fragments.cuh"

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

/// Steps that are issued together; a unit is two such pairs.
inline constexpr int pair_steps = 2;
static_assert(steps == 2 * pair_steps);

/// A store that never happens, of something that a pair's fragments are needed for: ptxas moves no store
/// across the wait for products, as it would move the widening.
__device__ inline void pin(uint32 shared, const Fragments& fragments) {
    uint32 all = 0;
#pragma unroll
    for (int i = 0; i < 4 * pair_steps; ++i) all |= fragments.words[i / 4][i % 4];
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
        Fragments fragments;    ///< between stages(): those of the first pair
        bool are_full = false;  ///< the `together` stages behind ring's

        __device__ Codes codes_of(int stage, int b) const {
            return Codes(shared, stage, gemm::block_row(warpgroup, b) / block_rows, factors.zeros(b));
        }

        __device__ void begin() {
            barrier_wait(gemm::full_barrier(shared, ring.stage), ring.parity);
            widen_pair(codes_of(ring.stage, 0), 0);
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
                issue_pair(0, places[i].stage, sums[b]);
                wgmma_wait<1>();
                if (b == 0 && i > 0) release_beside_products(shared, places[i - 1].stage);
                widen_pair(codes, pair_steps);
                issue_pair(pair_steps, places[i].stage, sums[b]);
                wgmma_wait<1>();
                codes = codes_of(places[(unit + 1) / gemm::row_blocks].stage, (unit + 1) % gemm::row_blocks);
                widen_pair(codes, 0);
            }
            pin(shared, fragments);
            wgmma_wait<0>();
#pragma unroll
            for (int b = 0; b < gemm::row_blocks; ++b) fence_accumulators(sums[b]);
            gemm::release_stage(shared, places[count - 1].stage);
        }

        /// Fragments of the pair of steps from `step` on.
        __device__ void widen_pair(const Codes& codes, int step) {
#pragma unroll
            for (int i = step; i < step + pair_steps; ++i) codes.widen(i, fragments);
#pragma unroll
            for (int i = step; i < step + pair_steps; ++i) fence_fragments(fragments.words[i]);
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

        /// The products of the pair of steps from `step` on.
        __device__ void issue_pair(int step, int stage, float (&to)[gemm::tile_n / 2]) {
            const uint64 right =
                panel_descriptor(shared + gemm::geometry.right_at() + stage * gemm::geometry.right_bytes());
#pragma unroll
            for (int i = step; i < step + pair_steps; ++i) fence_fragments(fragments.words[i]);
            wgmma_fence();
#pragma unroll
            for (int i = step; i < step + pair_steps; ++i)
                WgmmaLeft<Element, gemm::tile_n, false>::multiply(to, fragments.words[i],
                                                                  advance_descriptor(right, i * 32), 1);
            wgmma_commit();
        }
    };

    const Tensors& tensors_;
};

}  // namespace hone::quantized_linear::w16
