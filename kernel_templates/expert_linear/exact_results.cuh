// What becomes of sums on their way out, in double: for the references of experts' families.
#pragma once

#include "expert_linear/tensors.cuh"
#include "linear/exact_activation.cuh"

namespace hone::expert_linear::exact {

using linear::reference::activate;

__device__ inline double join_gated(double gate, double up) {
    if (!is_swiglu_oai) return activate(gate) * up;
    gate = gate > 7.0 ? 7.0 : gate;
    up = up > 7.0 ? 7.0 : up < -7.0 ? -7.0 : up;
    return gate / (1.0 + exp(-1.702 * gate)) * (up + 1.0);
}

/// A result of an expert from its sums; `second` counts where there are gates.
__device__ inline double result(const Tensors& t, int expert, int column, double first, double second) {
    const int64 at = static_cast<int64>(expert) * columns + column;
    if (has_bias) first += to_float(t.bias[at]);
    if (has_bias && gated) second += to_float(t.up_bias[at]);
    return gated ? join_gated(first, second) : activate(first);
}

}  // namespace hone::expert_linear::exact
