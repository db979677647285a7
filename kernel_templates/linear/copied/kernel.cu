// Linear, variant copied (sm_90a), for rows that do not begin at multiples of 16 bytes, which tensor copies
// need. A launch in front copies x and the weights to rows in the workspace that do (rows.cuh);
// product.cuh multiplies those.
#include "linear/wgmma/geometry.cuh"

namespace hone::linear::gemm {
inline constexpr Operands operands{};
}

#include "linear/copied/rows.cuh"
#include "linear/wgmma/product.cuh"
#include "linear/wgmma/written_weights.cuh"

extern "C" __global__ void __launch_bounds__(hone::linear::gemm::threads, Tuned::blocks_per_sm)
    linear_copied(HONE_PARAMETERS(linear_copied)) {
    const auto a = HONE_ARGUMENTS(linear_copied);
    using namespace hone::linear::gemm;
    const Maps maps{a.x_map, a.x_rest_map, a.weight_map, a.up_map, a.result_map};
    run(maps, {a.bias, a.residual, a.out, a.workspace, a.tokens, a.residual_stride, a.out_stride},
        WrittenWeights(maps), ElementProduct());
}

extern "C" __global__ void __launch_bounds__(hone::linear::copies::threads)
    linear_copy_rows(HONE_PARAMETERS(linear_copy_rows)) {
    const auto a = HONE_ARGUMENTS(linear_copy_rows);
    using namespace hone::linear;
    const copies::Rows all[] = {
        {reinterpret_cast<const Element*>(a.x), a.x_stride, reinterpret_cast<Element*>(a.x_rows), a.tokens},
        {a.weight, a.weight_stride, reinterpret_cast<Element*>(a.weight_rows), out},
        {a.up, a.up_stride, reinterpret_cast<Element*>(a.up_rows), gated ? out : 0}};
    copies::run(all);
}

namespace hone::linear::normalize {
inline constexpr int vector = 1;
}

#include "linear/normalize.cuh"
