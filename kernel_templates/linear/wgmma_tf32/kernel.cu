// Linear, variant wgmma_tf32: product.cuh says how.
#include "linear/wgmma_tf32/product.cuh"

extern "C" __global__ void __launch_bounds__(hone::linear::tf32::threads, Tuned::blocks_per_sm)
    linear_wgmma_tf32(HONE_PARAMETERS(linear_wgmma_tf32)) {
    const auto a = HONE_ARGUMENTS(linear_wgmma_tf32);
    hone::linear::tf32::run({a.x_map, a.weight_map, a.up_map}, {{.bias = a.bias,
                                                                 .residual = a.residual,
                                                                 .out = a.out,
                                                                 .tokens = a.tokens,
                                                                 .residual_stride = a.residual_stride,
                                                                 .out_stride = a.out_stride}});
}

namespace hone::linear::normalize {
inline constexpr int vector = 4;
}

#include "linear/normalize.cuh"
