// RMSNorm in front of a product, as a launch of its own (normalize.cuh on the device): for every variant that
// does not fold it into its products. The variant plans as if there were no norm and wraps that plan; its .cu
// includes normalize.cuh, and its kernels end with `normalize`, or what the family has in its place.
#pragma once

#include "kernel_templates/kit/launches.h"
#include "kernel_templates/linear/linear.h"

namespace hone::linear {

/// The members that any family's struct of linear_normalize has, in this order. `normalized` is the
/// workspace, or rather the place there that the plan substitutes for it.
inline constexpr KernelArg normalize_args[] = {
    pointer_arg(x, "x"),
    pointer_arg(norm_weight, "norm_weight"),
    pointer_arg(workspace, "normalized"),
    scalar_arg(x_stride, "x_stride"),
    float_arg(epsilon, "epsilon"),
};
inline constexpr Kernel normalize{"linear_normalize", normalize_args};

/// `product` behind a launch of `kernel`, the variant's linear_normalize, which writes the normalized x into
/// the workspace, behind what `product` keeps there; whatever in `product` names x and its stride names that
/// instead. Without a norm `product` itself. The kernel's members say where the family has x, its stride and
/// the workspace.
[[nodiscard]] Plan normalize_first(const LinearProblem&, const Plan& product, const Kernel& kernel);

}  // namespace hone::linear
