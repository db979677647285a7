// Products of variant wgmma_w16 (product.cuh) with a pause behind some stages (stages_together 1, 2 or 4).
//
// They are issued in pairs, which saves two fences and two waits a unit. Beside a pair's products the threads
// make the fragments of the next pair, also across units and stages, in place of those whose products are
// over.
//
// No branch and no loop stands between products and the wait for them, where registers of a left operand
// might be given to others. So the units of these stages are unrolled, and only behind them no product is
// under way: the other warpgroup's, or block's, keep the tensor cores busy.
#pragma once

#include "quantized_linear/wgmma_w16/units.cuh"

namespace hone::quantized_linear::w16 {

/// Whether parts of sums have stages beside whole groups of `together`. Most have none, and what nobody runs
/// would take a fifth of the image's compile time.
inline constexpr bool leaves_rest = together > 1 && gemm::tiling.k_unit != together;

/// Steps that are issued together; a unit is two such pairs.
inline constexpr int pair_steps = 2;
static_assert(steps == 2 * pair_steps);

/// A warpgroup's way through the stages of a tile. What follows from the place in the ring is made beside
/// products, and once: an instruction more is a cycle more.
template <int columns>
class PausedPass {
  public:
    __device__ PausedPass(uint32 shared, int k_count, const gemm::Ring& ring, const Units<columns>& units,
                          int /*warpgroup*/)
        : shared_(shared), k_count_(k_count), units_(units) {
        follow(ring);
    }

    /// The products of the tile's stages, at least one; then last_issued().
    template <class LastIssued>
    __device__ void run(LastIssued last_issued) {
        begin();
        int k = 0;
        for (; k + together <= k_count_; k += together) stages<together>(k);
        if constexpr (leaves_rest) {
            for (; k < k_count_; ++k) stages<1>(k);
        }
        last_issued();
        units_.fence_sums();
    }

    /// The place behind the stages that are done.
    __device__ const gemm::Ring& behind() const { return next_[0]; }

  private:
    __device__ void begin() {
        barrier_wait(gemm::full_barrier(shared_, next_[0].stage), next_[0].parity);
        codes_ = units_.codes_of(next_[0].stage, 0);
        widen<pair_steps>(codes_, 0, fragments_);
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
            units_.template issue<pair_steps>(fragments_, 0, at[i].stage, b);
            wgmma_wait<1>();
            if (b == 0 && i > 0) release_beside_products(shared_, at[i - 1].stage, threadIdx.x % 32);
            widen<pair_steps>(codes_, pair_steps, fragments_);
            units_.template issue<pair_steps>(fragments_, pair_steps, at[i].stage, b);
            wgmma_wait<1>();
            codes_ = units_.codes_of(at[(unit + 1) / gemm::row_blocks].stage, (unit + 1) % gemm::row_blocks);
            widen<pair_steps>(codes_, 0, fragments_);
        }
        pin<pair_steps>(shared_, fragments_, 0);
        wgmma_wait<0>();
        units_.fence_sums();
        gemm::release_stage(shared_, at[count - 1].stage);
    }

    __device__ void follow(const gemm::Ring& ring) {
        next_[0] = ring;
#pragma unroll
        for (int i = 1; i <= together; ++i) {
            next_[i] = next_[i - 1];
            next_[i].advance();
        }
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

    uint32 shared_;
    int k_count_;
    gemm::Ring next_[together + 1];  ///< behind what is done
    bool are_full_ = false;          ///< those from the second one on
    Units<columns> units_;
    Codes codes_;          ///< those of the unit that is next
    Fragments fragments_;  ///< between stages(): those of its first pair
};

}  // namespace hone::quantized_linear::w16
