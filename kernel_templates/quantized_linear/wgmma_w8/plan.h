// How quantized_linear/wgmma_w8/kernel.cu is launched: linear's product (linear/wgmma/) of codes.
#pragma once

#include "kernel_templates/linear/wgmma/product.h"
#include "kernel_templates/quantized_linear/quantize.h"

namespace hone::quantized_linear {

struct WgmmaW8Config : linear::gemm::WgmmaConfig {
    std::int64_t promote = 0;
    std::int64_t neighbours = 1;
};

/// The product of codes, as if there were no norm: that one is the quantizing launch's.
struct CodeProduct : linear::LinearProblem {
    explicit CodeProduct(const QuantizedProblem& p) : LinearProblem(p.dense()) {
        dtype = p.format == QuantFormat::fp8 ? Dtype::fp8_e4m3 : Dtype::int8;
        norm = false;
    }
    explicit CodeProduct(const Problem& problem) : CodeProduct(QuantizedProblem(problem)) {}
};

inline constexpr KernelArg wgmma_w8_args[] = {
    tensor_map_arg(0, "x_map"),
    tensor_map_arg(1, "weight_map"),
    tensor_map_arg(2, "up_map"),
    tensor_map_arg(3, "result_map"),
    pointer_arg(x_scales, "x_scales"),
    pointer_arg(scales, "scales"),
    pointer_arg(up_scales, "up_scales"),
    pointer_arg(bias, "bias"),
    pointer_arg(residual, "residual"),
    pointer_arg(out, "out"),
    pointer_arg(workspace, "workspace"),
    narrow_arg(tokens, "tokens"),
    scalar_arg(x_scale_stride, "x_scale_stride"),
    scalar_arg(scale_stride, "scale_stride"),
    scalar_arg(residual_stride, "residual_stride"),
    scalar_arg(out_stride, "out_stride"),
    tensor_map_arg(4, "x_rest_map"),
};
inline constexpr Kernel wgmma_w8_kernels[] = {{"quantized_linear_wgmma_w8", wgmma_w8_args}, quantize};

[[nodiscard]] Plan wgmma_w8_plan(const QuantizedProblem&, const WgmmaW8Config&, const DeviceTraits&);

[[nodiscard]] constexpr std::int64_t wgmma_w8_access_elements(const QuantizedProblem&, const WgmmaW8Config&) {
    return 16;
}

}  // namespace hone::quantized_linear
