// Linear, the part that all of its variants share: the call's arguments as hone_constants.h declares them,
// and the result from its sums.
#pragma once

#include "device/packet.cuh"
#include "linear/epilogue.cuh"

namespace hone::linear {

struct Tensors : Arguments {
    /// The result from its sums; `token` and `column` exist.
    __device__ float finish(int64 token, int column, const float (&sums)[products]) const {
        if constexpr (gated) return join_gated(sums[0], sums[products - 1]);
        return finish(token, column, sums[0]);
    }
    /// The same where the problem is not gated.
    __device__ float finish(int64 token, int column, float sum) const {
        if constexpr (has_bias) sum += to_float(bias[column]);
        if constexpr (!gated) sum = activate(sum);
        if constexpr (has_residual)
            sum += to_float(load_packet<Element, 1>(residual + token * residual_stride + column).elements[0]);
        return sum;
    }
};

}  // namespace hone::linear
