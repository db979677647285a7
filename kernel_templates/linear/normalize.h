// RMSNorm in front of a product, as a launch of its own (normalize.cuh on the device): for every variant that
// does not fold it into its products. The variant plans as if there were no norm, wraps that plan, adds the
// cost, and its .cu includes normalize.cuh.
#pragma once

#include "kernel_templates/linear/linear.h"

namespace hone::linear {

/// Where the family has what the launch takes: indices of pointers and scalars.
struct NormArguments {
    int x = linear::x;
    int norm_weight = linear::norm_weight;
    int workspace = linear::workspace;
    int x_stride = linear::x_stride;
    int epsilon = linear::epsilon;
};

/// `product` behind a launch that writes the normalized x into the workspace, behind what `product` keeps
/// there; whatever in `product` names x and its stride names that instead. Without a norm `product` itself.
[[nodiscard]] Plan normalize_first(const LinearProblem&, const Plan& product, const NormArguments& = {});

/// Modelled microseconds of that launch; 0 without a norm.
[[nodiscard]] double normalize_us(const LinearProblem&, const DeviceTraits&);

}  // namespace hone::linear
