// Quantized linear, variant wgmma_w8 (sm_90a): codes of 8 bits times codes of 8 bits.
// linear/wgmma/product.cuh says how tiles come and go; a stage has 128 columns. wgmma_w8_product multiplies
// them; int8 in exact integers, fp8 in the tensor cores' own sums, or with `promote` in sums of some steps,
// which float32 registers add up. Sums get their scales in registers before they leave: a part of a sum is as
// good as a whole one, scales being factors. fp8 with blocks has a scale a step, and every step's sums get
// theirs.
//
// x of 16 bits becomes codes in a launch in front (quantize.cuh).
#include "linear/wgmma/geometry.cuh"

namespace hone::linear::gemm {
inline constexpr Operands operands{.columns = 128};
}

#include "linear/wgmma/product.cuh"
#include "quantized_linear/wgmma_w8/product.cuh"

extern "C" __global__ void __launch_bounds__(hone::linear::gemm::threads, Tuned::blocks_per_sm)
    quantized_linear_wgmma_w8(HONE_PARAMETERS(quantized_linear_wgmma_w8)) {
    const auto a = HONE_ARGUMENTS(quantized_linear_wgmma_w8);
    using namespace hone::linear::gemm;
    using namespace hone::quantized_linear::w8;
    const Maps maps{a.x_map, a.x_rest_map, a.weight_map, a.up_map, a.result_map};
    const Scales all_scales{a.x_scales, a.scales, a.up_scales, a.x_scale_stride, a.scale_stride, a.tokens};
    run(maps, {a.bias, a.residual, a.out, a.workspace, a.tokens, a.residual_stride, a.out_stride},
        MatrixWeights(maps), CodeProduct(all_scales));
}

namespace hone::quantized_linear::quantize {
inline constexpr int vector = 8;
}

#include "quantized_linear/quantize.cuh"
