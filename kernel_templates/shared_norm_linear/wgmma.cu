// Linear layers that share a norm, variant wgmma: linear's tensor-core product (linear/wgmma/product.cuh),
// whose sharing.cuh says what is done for the norm.
#include "linear/wgmma/geometry.cuh"

namespace hone::linear::gemm {
inline constexpr Operands operands{};
}

#include "linear/wgmma/product.cuh"

extern "C" __global__ void __launch_bounds__(hone::linear::gemm::threads, Tuned::blocks_per_sm)
    shared_norm_linear_wgmma(HONE_PARAMETERS(shared_norm_linear_wgmma)) {
    const auto a = HONE_ARGUMENTS(shared_norm_linear_wgmma);
    using namespace hone::linear::gemm;
    const Maps maps{a.x_map, a.x_rest_map, a.weight_map, a.up_map, a.result_map};
    const SharingResults results{
        {a.bias, a.residual, a.out, a.workspace, a.tokens, a.residual_stride, a.out_stride},
        a.norm_squares,
        a.epsilon,
        a.norm_weight,
        a.scaled,
        a.squares};
    run(maps, results, MatrixWeights(maps), ElementProduct());
}
