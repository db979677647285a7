// Linear, variant wgmma_tf32: wgmma_tf32.cuh says how.
#include "linear/wgmma_tf32.cuh"

extern "C" __global__ void __launch_bounds__(hone::linear::tf32::threads, Tuned::blocks_per_sm)
    linear_wgmma_tf32(const __grid_constant__ hone::TensorMap x_map,
                      const __grid_constant__ hone::TensorMap weight_map,
                      const __grid_constant__ hone::TensorMap up_map, const hone::linear::Element* bias,
                      const hone::linear::Element* residual, hone::linear::Element* result, int tokens,
                      long long residual_stride, long long out_stride) {
    hone::linear::tf32::run({x_map, weight_map, up_map}, {.bias = bias,
                                                          .residual = residual,
                                                          .result = result,
                                                          .tokens = tokens,
                                                          .residual_stride = residual_stride,
                                                          .out_stride = out_stride});
}

namespace hone::linear::normalize {
inline constexpr int vector = 4;
}

#include "linear/normalize.cuh"
