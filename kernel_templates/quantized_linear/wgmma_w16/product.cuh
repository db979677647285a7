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
/// across the wait for products, as it would move the widening. Two stores would be jumped over, by a branch.
__device__ inline void pin(uint32 shared, const Fragments& fragments) {
    uint32 all = 0;
#pragma unroll
    for (int i = 0; i < 4 * pair_steps; ++i) all |= fragments.words[i / 4][i % 4];
    asm volatile(
        "{\n.reg .pred never;\nsetp.eq.u32 never, %0, 0;\n@never st.shared.u32 [%0], %1;\n}" ::"r"(shared),
        "r"(all)
        : "memory");
}

/// The sums of a tile's first `columns` columns.
template <int columns>
__device__ inline float (&first_of(float (&sums)[gemm::tile_n / 2]))[columns / 2] {
    return reinterpret_cast<float(&)[columns / 2]>(sums);
}

/// As linear::gemm::ElementProduct; of a tile's columns the first `columns` are multiplied, the sums of
/// others are zero.
template <int columns = gemm::tile_n>
class WidenedProduct {
  public:
    __device__ explicit WidenedProduct(const Tensors& tensors) : tensors_(tensors) {}

    template <class LastIssued>
    __device__ void multiply(uint32 shared, int warpgroup, const gemm::Work& tile, gemm::Ring& ring,
                             gemm::Sums& sums, LastIssued last_issued) const {
        // Zeros, not a first product that sets the sums: with tail_split ptxas would define them anew between
        // products, and let each wait for the one before (C7515).
        const RowFactors factors(tensors_, tile, warpgroup);
        Pass pass(shared, warpgroup, tile.k_count, ring, sums, factors);
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
        ring = pass.behind();
        last_issued();
#pragma unroll
        for (int b = 0; b < gemm::row_blocks; ++b) fence_accumulators(sums[b]);
        factors.scale(sums);
    }

  private:
    /// A warpgroup's way through the stages of a tile. What follows from the place in the ring is made beside
    /// products, and once: an instruction more is a cycle more.
    class Pass {
      public:
        __device__ Pass(uint32 shared, int warpgroup, int k_count, const gemm::Ring& ring, gemm::Sums& sums,
                        const RowFactors& factors)
            : shared_(shared),
              places_(shared, gemm::block_row(warpgroup, 0) / block_rows),
              right_((shared >> 4) + static_cast<uint32>(panel_descriptor(gemm::geometry.right_at()))),
              k_count_(k_count),
              sums_(sums),
              factors_(factors) {
            follow(ring);
        }

        __device__ void begin() {
            barrier_wait(gemm::full_barrier(shared_, next_[0].stage), next_[0].parity);
            codes_ = codes_of(next_[0].stage, 0);
            widen_pair(0);
        }

        /// `count` stages from the k-th on, and the first fragments of what is behind them: behind the tile's
        /// last stage they are made of anything, and nobody uses them.
        template <int count>
        __device__ void stages(int k) {
            constexpr int units = count * gemm::row_blocks;
            gemm::Ring at[count + 1];
#pragma unroll
            for (int i = 0; i <= count; ++i) at[i] = next_[i];
            if (!are_full_) wait_for<count>(k);
#pragma unroll
            for (int unit = 0; unit < units; ++unit) {
                const int i = unit / gemm::row_blocks;
                const int b = unit % gemm::row_blocks;
                if (unit + 1 == units) {
                    follow(at[count]);
                    are_full_ = test_next();
                }
                issue_pair(0, at[i].stage, sums_[b]);
                wgmma_wait<1>();
                if (b == 0 && i > 0) release_beside_products(shared_, at[i - 1].stage);
                widen_pair(pair_steps);
                issue_pair(pair_steps, at[i].stage, sums_[b]);
                wgmma_wait<1>();
                codes_ = codes_of(at[(unit + 1) / gemm::row_blocks].stage, (unit + 1) % gemm::row_blocks);
                widen_pair(0);
            }
            pin(shared_, fragments_);
            wgmma_wait<0>();
#pragma unroll
            for (int b = 0; b < gemm::row_blocks; ++b) fence_accumulators(sums_[b]);
            gemm::release_stage(shared_, at[count - 1].stage);
        }

        /// The place behind the stages that are done.
        __device__ const gemm::Ring& behind() const { return next_[0]; }

      private:
        __device__ Codes codes_of(int stage, int b) const {
            const int block = (gemm::block_row(0, b) - gemm::block_row(0, 0)) / block_rows;
            return Codes(places_, stage, block, factors_.zeros(b));
        }

        /// A panel's descriptor, whose low word alone says where it stands.
        __device__ static uint64 descriptor(uint32 low) { return panel_descriptor(0) & ~0xffffffffull | low; }

        __device__ void follow(const gemm::Ring& ring) {
            next_[0] = ring;
#pragma unroll
            for (int i = 1; i <= together; ++i) {
                next_[i] = next_[i - 1];
                next_[i].advance();
            }
        }

        /// Fragments of the pair of steps from `step` on.
        __device__ void widen_pair(int step) {
#pragma unroll
            for (int i = step; i < step + pair_steps; ++i) codes_.widen(i, fragments_);
#pragma unroll
            for (int i = step; i < step + pair_steps; ++i) fence_fragments(fragments_.words[i]);
        }

        /// Until `count` stages, and the one behind them, are full.
        template <int count>
        __device__ void wait_for(int k) {
#pragma unroll
            for (int i = 1; i <= count; ++i) {
                if (i < count || k + count < k_count_)
                    barrier_wait(gemm::full_barrier(shared_, next_[i].stage), next_[i].parity);
            }
        }
        /// Beside products there is no waiting, but time to see whether there will be need to.
        __device__ bool test_next() const {
            uint32 full = 1;
#pragma unroll
            for (int i = 1; i <= together; ++i)
                full &= barrier_test(gemm::full_barrier(shared_, next_[i].stage), next_[i].parity);
            return full != 0;
        }

        /// The products of the pair of steps from `step` on.
        __device__ void issue_pair(int step, int stage, float (&to)[gemm::tile_n / 2]) {
            const uint32 right = right_ + stage * (gemm::geometry.right_bytes() >> 4);
#pragma unroll
            for (int i = step; i < step + pair_steps; ++i) fence_fragments(fragments_.words[i]);
            wgmma_fence();
#pragma unroll
            for (int i = step; i < step + pair_steps; ++i)
                WgmmaLeft<Element, columns, false>::multiply(first_of<columns>(to), fragments_.words[i],
                                                             descriptor(right + (i * 32 >> 4)), 1);
            wgmma_commit();
        }

        uint32 shared_;
        ThreadPlaces places_;
        uint32 right_;  ///< low word of the descriptor of x in the ring's first stage
        int k_count_;
        gemm::Sums& sums_;
        const RowFactors& factors_;
        gemm::Ring next_[together + 1];  ///< behind what is done
        bool are_full_ = false;          ///< those from the second one on
        Codes codes_;                    ///< those of the unit that is next
        Fragments fragments_;            ///< between stages(): those of its first pair
    };

    const Tensors& tensors_;
};

}  // namespace hone::quantized_linear::w16
