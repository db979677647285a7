// Quantized linear, variant dequantize (sm_90a): packed weights, many tokens. A launch in front writes the
// numbers that codes stand for into the workspace, as rows of 16-bit elements (numbers.cuh); linear's
// tensor-core product (linear/wgmma/product.cuh) multiplies those as any weights.
#include "linear/wgmma/geometry.cuh"

namespace hone::linear::gemm {
inline constexpr Operands operands{};
}

#include "linear/wgmma/product.cuh"
#include "linear/wgmma/written_weights.cuh"
#include "quantized_linear/dequantize/numbers.cuh"

extern "C" __global__ void __launch_bounds__(hone::linear::gemm::threads, Tuned::blocks_per_sm)
    quantized_linear_dequantized(HONE_PARAMETERS(quantized_linear_dequantized)) {
    const auto a = HONE_ARGUMENTS(quantized_linear_dequantized);
    using namespace hone::linear::gemm;
    const Maps maps{a.x_map, a.x_rest_map, a.weight_map, a.up_map, a.result_map};
    run(maps, {a.bias, a.residual, a.out, a.workspace, a.tokens, a.residual_stride, a.out_stride},
        WrittenWeights(maps), ElementProduct());
}

namespace hone::linear::normalize {
inline constexpr int vector = 8;
}

#include "linear/normalize.cuh"
