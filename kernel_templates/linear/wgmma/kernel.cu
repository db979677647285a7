// Linear, variant wgmma: product.cuh says how.
#include "linear/wgmma/geometry.cuh"

namespace hone::linear::gemm {
inline constexpr Operands operands{};
}

#include "linear/wgmma/product.cuh"

extern "C" __global__ void __launch_bounds__(hone::linear::gemm::threads, Tuned::blocks_per_sm)
    linear_wgmma(HONE_PARAMETERS(linear_wgmma)) {
    const auto a = HONE_ARGUMENTS(linear_wgmma);
    using namespace hone::linear::gemm;
    const Maps maps{a.x_map, a.x_rest_map, a.weight_map, a.up_map, a.result_map};
    run(maps, {a.bias, a.residual, a.out, a.workspace, a.tokens, a.residual_stride, a.out_stride},
        MatrixWeights(maps), ElementProduct());
}

namespace hone::linear::normalize {
inline constexpr int vector = 8;
}

#include "linear/normalize.cuh"
