// Quantized linear, variant wgmma_w8 (sm_90a): codes of 8 bits times codes of 8 bits. linear/gemm.cuh says
// how tiles come and go; a stage has 128 columns. wgmma_w8_product multiplies them; int8 in exact integers,
// fp8 in the tensor cores' own sums, or with `promote` in sums of some steps, which float32 registers add up.
// Sums get their scales in registers before they leave: a part of a sum is as good as a whole one, scales
// being factors. fp8 with blocks has a scale a step, and every step's sums get theirs.
//
// x of 16 bits becomes codes in a launch in front (quantize.cuh).
#include "linear/gemm_geometry.cuh"

namespace hone::linear::gemm {
inline constexpr Operands operands{.columns = 128};
}

#include "linear/gemm.cuh"
#include "quantized_linear/wgmma_w8_product.cuh"

extern "C" __global__ void __launch_bounds__(hone::linear::gemm::threads, Tuned::blocks_per_sm)
    quantized_linear_wgmma_w8(const __grid_constant__ hone::TensorMap x_map,
                              const __grid_constant__ hone::TensorMap weight_map,
                              const __grid_constant__ hone::TensorMap up_map,
                              const __grid_constant__ hone::TensorMap result_map, const float* x_scales,
                              const float* scales, const float* up_scales, const hone::linear::Element* bias,
                              const hone::linear::Element* residual, hone::linear::Element* result,
                              float* workspace, int tokens, long long x_scale_stride, long long scale_stride,
                              long long residual_stride, long long out_stride) {
    using namespace hone::linear::gemm;
    using namespace hone::quantized_linear::w8;
    const Maps maps{x_map, weight_map, up_map, result_map};
    const Scales all_scales{x_scales, scales, up_scales, x_scale_stride, scale_stride, tokens};
    run(maps, {bias, residual, result, workspace, tokens, residual_stride, out_stride}, MatrixWeights(maps),
        CodeProduct(all_scales));
}

namespace hone::quantized_linear::quantize {
inline constexpr int vector = 8;
}

#include "quantized_linear/quantize.cuh"
