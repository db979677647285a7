// How shared_norm_linear/wgmma.cu is launched: as linear's wgmma.
#pragma once

#include "kernel_templates/linear/wgmma/plan.h"
#include "kernel_templates/shared_norm_linear/shared_norm_linear.h"

namespace hone::shared_norm_linear {

using linear::WgmmaConfig;

inline constexpr KernelArg wgmma_args[] = {
    tensor_map_arg(0, "x_map"),
    tensor_map_arg(1, "weight_map"),
    tensor_map_arg(2, "up_map"),
    tensor_map_arg(3, "result_map"),
    tensor_map_arg(4, "x_rest_map"),
    pointer_arg(norm_weight, "norm_weight"),
    pointer_arg(bias, "bias"),
    pointer_arg(residual, "residual"),
    pointer_arg(out, "out"),
    pointer_arg(workspace, "workspace"),
    pointer_arg(norm_squares, "norm_squares"),
    pointer_arg(scaled, "scaled"),
    pointer_arg(squares, "squares"),
    narrow_arg(tokens, "tokens"),
    scalar_arg(residual_stride, "residual_stride"),
    scalar_arg(out_stride, "out_stride"),
    float_arg(epsilon, "epsilon"),
};
inline constexpr Kernel wgmma_kernels[] = {{"shared_norm_linear_wgmma", wgmma_args}};

[[nodiscard]] inline Plan wgmma_plan(const SharedNormProblem& p, const WgmmaConfig& c,
                                     const DeviceTraits& traits) {
    return linear::gemm::plan_product(wgmma_kernels[0], p.product(), c, traits, {.result = p.dtype});
}

}  // namespace hone::shared_norm_linear
