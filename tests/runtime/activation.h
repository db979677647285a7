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
    }
    return x;
}

}  // namespace hone::test
