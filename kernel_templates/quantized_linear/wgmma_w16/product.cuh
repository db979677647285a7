// The products of variant wgmma_w16 (kernel.cu). A warpgroup works unit by unit: the four products, of 16
// columns each, of one of its blocks of 64 rows with a stage of x.
//
// A product whose left operand comes from registers holds up the warp that issues it until the one before has
// begun, and nothing that the tensor cores could do meanwhile waits for it. So what widens codes stands
// beside products that were issued before, and fragments are made anew when their products are over: a pair
// of steps at a time, with a pause behind some stages (paused.cuh), or unit by unit without one, one stage
// after the other (steady.cuh) or two at a time (paired.cuh).
#pragma once

#include "quantized_linear/wgmma_w16/paired.cuh"
#include "quantized_linear/wgmma_w16/paused.cuh"
#include "quantized_linear/wgmma_w16/steady.cuh"

namespace hone::quantized_linear::w16 {

/// A warpgroup's way through the stages of a tile.
template <int columns, bool pauses, bool pairs>
struct PassOf {
    using Type = PausedPass<columns>;
};
template <int columns>
struct PassOf<columns, false, false> {
    using Type = SteadyPass<columns>;
};
template <int columns>
struct PassOf<columns, false, true> {
    using Type = PairedPass<columns>;
};

/// As linear::gemm::ElementProduct; of a tile's columns the first `columns` are multiplied, the sums of
/// others are zero.
template <int columns = gemm::tile_n>
class WidenedProduct {
  public:
    __device__ explicit WidenedProduct(const Tensors& tensors) : tensors_(tensors) {}

    template <class LastIssued>
    __device__ void multiply(uint32 shared, int warpgroup, const gemm::Work& tile, gemm::Ring& ring,
                             gemm::Sums& sums, LastIssued last_issued) const {
        const RowFactors factors(tensors_, tile, warpgroup);
        typename PassOf<columns, form.pauses(), form.pairs>::Type pass(
            shared, tile.k_count, ring, Units<columns>(shared, warpgroup, sums, factors), warpgroup);
        // Zeros, not a first product that sets the sums: with tail_split ptxas would define them anew between
        // products, and let each wait for the one before (C7515).
#pragma unroll
        for (int b = 0; b < gemm::row_blocks; ++b) {
#pragma unroll
            for (int i = 0; i < gemm::tile_n / 2; ++i) sums[b][i] = 0.0f;
            fence_accumulators(sums[b]);
        }
        pass.run(last_issued);
        ring = pass.behind();
        factors.scale(sums);
    }

  private:
    const Tensors& tensors_;
};

}  // namespace hone::quantized_linear::w16
