// Linear, variant wgmma: gemm.cuh says how.
#include "linear/gemm_geometry.cuh"

namespace hone::linear::gemm {
inline constexpr Operands operands{};
}

#include "linear/gemm.cuh"

extern "C" __global__ void __launch_bounds__(hone::linear::gemm::threads, Tuned::blocks_per_sm)
    linear_wgmma(const __grid_constant__ hone::TensorMap x_map,
                 const __grid_constant__ hone::TensorMap weight_map,
                 const __grid_constant__ hone::TensorMap up_map,
                 const __grid_constant__ hone::TensorMap result_map, const hone::linear::Element* bias,
                 const hone::linear::Element* residual, hone::linear::Element* result, float* workspace,
                 int tokens, long long residual_stride, long long out_stride) {
    using namespace hone::linear::gemm;
    const Maps maps{x_map, weight_map, up_map, result_map};
    run(maps, {bias, residual, result, workspace, tokens, residual_stride, out_stride}, MatrixWeights(maps),
        ElementProduct());
}

namespace hone::linear::normalize {
inline constexpr int vector = 8;
}

#include "linear/normalize.cuh"
