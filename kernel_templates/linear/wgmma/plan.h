// How linear/wgmma/kernel.cu is launched.
#pragma once

#include "kernel_templates/linear/normalize.h"
#include "kernel_templates/linear/wgmma/product.h"

namespace hone::linear {

inline constexpr KernelArg wgmma_args[] = {
    tensor_map_arg(0, "x_map"),
    tensor_map_arg(1, "weight_map"),
    tensor_map_arg(2, "up_map"),
    tensor_map_arg(3, "result_map"),
    pointer_arg(bias, "bias"),
    pointer_arg(residual, "residual"),
    pointer_arg(out, "out"),
    pointer_arg(workspace, "workspace"),
    narrow_arg(tokens, "tokens"),
    scalar_arg(residual_stride, "residual_stride"),
    scalar_arg(out_stride, "out_stride"),
    tensor_map_arg(4, "x_rest_map"),
};
struct WgmmaConfig : gemm::WgmmaConfig {
    std::int64_t neighbours = 1;
};

inline constexpr Kernel wgmma_kernels[] = {{"linear_wgmma", wgmma_args}, normalize};

[[nodiscard]] Plan wgmma_plan(const LinearProblem&, const WgmmaConfig&, const DeviceTraits&);

[[nodiscard]] constexpr std::int64_t wgmma_access_elements(const LinearProblem&, const WgmmaConfig&) {
    return 8;
}

}  // namespace hone::linear
