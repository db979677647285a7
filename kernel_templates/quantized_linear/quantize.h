// Codes of 16-bit x in a launch in front of a product of codes (quantize.cuh on the device). The variant
// plans as if x came as codes and wraps that plan; its .cu includes quantize.cuh, and its kernels end with
// `quantize`.
#pragma once

#include "kernel_templates/quantized_linear/quantized_linear.h"

namespace hone::quantized_linear {

/// `codes` and `code_scales` are places in the workspace, which the plan substitutes.
inline constexpr KernelArg quantize_args[] = {
    pointer_arg(x, "x"),
    pointer_arg(norm_weight, "norm_weight"),
    pointer_arg(workspace, "codes"),
    pointer_arg(workspace, "code_scales"),
    scalar_arg(x_stride, "x_stride"),
    float_arg(epsilon, "epsilon"),
};
inline constexpr Kernel quantize{"quantized_linear_quantize", quantize_args};

/// `product` behind a launch that writes codes of x [tokens, in] and their scales [tokens, groups] into the
/// workspace, behind what `product` keeps there; whatever in `product` names x, x_scales and their strides
/// names those instead. Where x comes as codes `product` itself. `kernel` is the variant's `quantize`.
[[nodiscard]] Plan quantize_first(const QuantizedProblem&, const Plan& product, const Kernel& kernel);

/// `product` behind the launch that makes of x what is multiplied, where the problem needs one: codes, or a
/// norm's results (linear/normalize.h). `kernels` are those of the variant: the product's, `normalize` and
/// `quantize`.
[[nodiscard]] Plan prepare_first(const QuantizedProblem&, const Plan& product, const Kernel (&kernels)[3]);

}  // namespace hone::quantized_linear
