// The launch that adds up a token's results behind a product (combine.cuh on the device): for every variant.
#pragma once

#include "kernel_templates/expert_linear/expert_linear.h"
#include "kernel_templates/kit/launches.h"

namespace hone::expert_linear {

inline constexpr Kernel combine{"expert_linear_combine", call_args};

/// Elements of an access to a result, given those of accesses that rows of x allow.
[[nodiscard]] constexpr std::int64_t result_vector(const ExpertProblem& p, std::int64_t access) {
    return p.out % access == 0 ? access : 1;
}

/// `product`, and where the problem combines, `kernel` (the variant's expert_linear_combine) behind it, with
/// accesses of `vector` elements. The workspace's first bytes are the products' results, rounded.
[[nodiscard]] Plan combine_behind(const ExpertProblem&, const Plan& product, const Kernel& kernel,
                                  std::int64_t vector);

}  // namespace hone::expert_linear
