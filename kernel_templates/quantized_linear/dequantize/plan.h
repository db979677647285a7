// How quantized_linear/dequantize/kernel.cu is launched: a launch that writes a weight's numbers into the
// workspace (numbers.cuh), and linear's product (linear/wgmma/) of those.
#pragma once

#include "kernel_templates/linear/wgmma/product.h"
#include "kernel_templates/quantized_linear/dequantize/geometry.cuh"
#include "kernel_templates/quantized_linear/quantized_linear.h"

namespace hone::quantized_linear {

/// Those of the launch in front. `numbers` and `up_numbers` are places in the workspace, which the plan
/// substitutes.
inline constexpr KernelArg dequantize_args[] = {
    pointer_arg(weight, "weight"),       pointer_arg(scales, "scales"),
    pointer_arg(zeros, "zeros"),         pointer_arg(up, "up"),
    pointer_arg(up_scales, "up_scales"), pointer_arg(up_zeros, "up_zeros"),
    pointer_arg(workspace, "numbers"),   pointer_arg(workspace, "up_numbers"),
};
/// Places of numbers and up_numbers among them.
inline constexpr std::uint8_t numbers_member = 6;
inline constexpr std::uint8_t up_numbers_member = 7;

inline constexpr KernelArg dequantized_args[] = {
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
inline constexpr Kernel dequantize_kernels[] = {{"quantized_linear_dequantized", dequantized_args},
                                                {"quantized_linear_dequantize", dequantize_args},
                                                normalize};

/// Bytes of the numbers of one weight.
[[nodiscard]] inline std::int64_t number_bytes(const QuantizedProblem& p) {
    return p.out * p.in * size_bytes(p.dtype);
}

[[nodiscard]] Plan dequantize_plan(const QuantizedProblem&, const linear::gemm::WgmmaConfig&,
                                   const DeviceTraits&);

[[nodiscard]] constexpr std::int64_t dequantize_access_elements(const QuantizedProblem&,
                                                                const linear::gemm::WgmmaConfig&) {
    return 16;
}

}  // namespace hone::quantized_linear
