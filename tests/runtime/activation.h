// The activations of linear layers in double: the oracle of tests on the GPU.
#pragma once

#include <algorithm>
#include <cmath>

#include "kernel_templates/enums.h"

namespace hone::test {

inline double activate(Activation activation, double x) {
    switch (activation) {
        case Activation::none: return x;
        case Activation::gelu_tanh:
            return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
        case Activation::gelu_erf: return 0.5 * x * std::erfc(-x * 0.7071067811865476);
        case Activation::silu: return x / (1 + std::exp(-x));
        case Activation::relu: return std::max(x, 0.0);
        case Activation::swiglu_oai: return std::nan("");  // of two products: join_gated
    }
    return x;
}

/// What a gated operator makes of its two products.
inline double join_gated(Activation activation, double gate, double up) {
    if (activation != Activation::swiglu_oai) return activate(activation, gate) * up;
    const double least = std::min(gate, 7.0);
    return least / (1 + std::exp(-1.702 * least)) * (std::clamp(up, -7.0, 7.0) + 1);
}

}  // namespace hone::test
