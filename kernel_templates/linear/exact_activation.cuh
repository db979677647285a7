// The activation of a product's result in double: for the references of all families of products.
#pragma once

#include "linear/epilogue.cuh"

namespace hone::linear::reference {

__device__ inline double activate(double x) {
    switch (activation) {
        case Activation::gelu_tanh:
            return 0.5 * x * (1.0 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
        case Activation::gelu_erf: return 0.5 * x * erfc(-x * 0.70710678118654752440);
        case Activation::silu: return x / (1.0 + exp(-x));
        case Activation::relu: return x > 0.0 ? x : 0.0;
        default: return x;
    }
}

}  // namespace hone::linear::reference
