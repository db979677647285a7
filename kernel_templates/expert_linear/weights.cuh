// Weights of experts as they are multiplied, element by element.
#pragma once

#include "expert_linear/tensors.cuh"

namespace hone::expert_linear {

/// The weight of an expert, [out, in]; of a gated product's two, 0 is the gate and 1 up.
__device__ inline const Element* weight_of(const Tensors& tensors, int product, int expert) {
    return (gated && product == 1 ? tensors.up : tensors.weight) + static_cast<int64>(expert) * columns * in;
}

}  // namespace hone::expert_linear
