// The products of variant wgmma_w16 (wgmma_w16.cu). A warpgroup works unit by unit: the four products of one
// of its blocks of 64 rows with a stage of x. While the tensor cores work on a unit its threads make the next
// one's fragments, in the other of two sets of registers; that one may belong to the next stage, which
// therefore is waited for before.
//
// No branch and no loop stands between products and the wait for them: registers of a left operand would be
// given to others (NVRTC 13.0). So the units of some stages are unrolled, and only behind them no product is
// under way: the other warpgroup's, or block's, keep the tensor cores busy.
//
// Codes are read behind the wait for the unit before: ptxas moves no load across it. Read earlier, their
// widening would stand between the products of the unit that it should run beside.
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

/// A store that never happens, of something that all fragments are needed for: ptxas moves no store across
/// the wait for products, as it would move the widening.
__device__ inline void pin(uint32 shared, const Fragments& fragments) {
    uint32 all = 0;
#pragma unroll
    for (int i = 0; i < 4 * steps; ++i) all |= fragments.words[i];
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
        const RowFactors factors(tensors_, tile, warpgroup);
        Pass pass{shared, warpgroup, tile.k_count, ring, sums, factors};
#pragma unroll
        for (int b = 0; b < gemm::row_blocks; ++b) fence_accumulators(sums[b]);
        Fragments even, odd;
        pass.begin(even);
        int k = 0;
        if constexpr (together > 1) {
            for (; k + together <= tile.k_count; k += together) pass.template stages<together>(k, even, odd);
        }
        for (; k < tile.k_count; ++k) {
            pass.template stages<1>(k, even, odd);
            if constexpr (gemm::row_blocks % 2 != 0) {
                if (++k < tile.k_count) pass.template stages<1>(k, odd, even);
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
        bool are_full = false;  ///< the `together` stages behind ring's

        __device__ int block(int b) const { return gemm::block_row(warpgroup, b) / block_rows; }
        __device__ Codes codes(int stage, int b) const {
            return Codes(shared, stage, block(b), factors.zeros(b));
        }

        /// The first unit's fragments.
        __device__ void begin(Fragments& fragments) {
            barrier_wait(gemm::full_barrier(shared, ring.stage), ring.parity);
            codes(ring.stage, 0).widen(fragments);
        }

        /// `count` stages from the k-th on. `first` holds their first unit's fragments, and the last one of
        /// the two those of the first unit behind them: with an odd number of units that is `second`. Behind
        /// the tile's last stage they are made of anything, and nobody uses them.
        template <int count>
        __device__ void stages(int k, Fragments& first, Fragments& second) {
            constexpr int units = count * gemm::row_blocks;
            gemm::Ring places[count + 1];
            take<count>(k, places);
#pragma unroll
            for (int unit = 0; unit < units; ++unit) {
                const int i = unit / gemm::row_blocks;
                const int b = unit % gemm::row_blocks;
                Fragments& now = unit % 2 == 0 ? first : second;
                Fragments& then = unit % 2 == 0 ? second : first;
                if (unit + 1 == units) are_full = test_next();
                multiply_unit(now, places[i].stage, sums[b], k + i);
                wgmma_wait<1>();
                if (b == 0 && i > 0) release_beside_products(shared, places[i - 1].stage);
                codes(places[(unit + 1) / gemm::row_blocks].stage, (unit + 1) % gemm::row_blocks).widen(then);
                fence_fragments(then.words);
                if (unit + 1 == units) pin(shared, then);
            }
            wgmma_wait<0>();
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

        __device__ void multiply_unit(Fragments& left, int stage, float (&to)[gemm::tile_n / 2],
                                      int k) const {
            const uint64 right =
                panel_descriptor(shared + gemm::geometry.right_at() + stage * gemm::geometry.right_bytes());
            fence_fragments(left.words);
            wgmma_fence();
#pragma unroll
            for (int step = 0; step < steps; ++step)
                WgmmaLeft<Element, gemm::tile_n, false>::multiply(
                    to, left.words + 4 * step, advance_descriptor(right, step * 32), k | step);
            wgmma_commit();
        }
    };

    const Tensors& tensors_;
};

}  // namespace hone::quantized_linear::w16
