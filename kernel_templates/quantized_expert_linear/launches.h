// The launches around a product (codes.cuh and expert_linear/combine.cuh on the device): for every variant.
#pragma once

#include "kernel_templates/expert_linear/combine.h"
#include "kernel_templates/quantized_expert_linear/quantized_expert_linear.h"

namespace hone::quantized_expert_linear {

inline constexpr Kernel codes{"quantized_expert_linear_codes", call_args};
inline constexpr Kernel copies{"expert_linear_copies", call_args};
inline constexpr Kernel combine{"expert_linear_combine", call_args};

/// `product` behind a launch that makes codes of x, where codes are multiplied with codes, and before one
/// that adds up results, where these are combined. `kernels` are those of the variant: the product's, `codes`
/// (or `copies`, for the variant to put in front) and `combine`, whose accesses are of `vector` elements.
[[nodiscard]] Plan around(const QuantizedExpertProblem&, const Plan& product, const Kernel (&kernels)[3],
                          std::int64_t vector);

}  // namespace hone::quantized_expert_linear
