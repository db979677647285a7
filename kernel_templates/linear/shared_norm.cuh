// A norm that two products share (shared_norm_linear): what variants of linear do for it.
//
// The product in front of the norm adds the residual and writes, beside its results h, h times the norm's
// weight, and squares of h: a sum for each token and `square_columns` columns, a slot. The product behind
// reads h times the weight as its x, and multiplies its sums with 1 / sqrt(sum of a token's slots / in +
// epsilon). Slots are the same whatever the configs of both are, and so is the order in which they are added
// up.
#pragma once

#include "device/reduce.cuh"
#include "linear/epilogue.cuh"
#include "linear/square_columns.cuh"

namespace hone::linear {

// What is asked here are functions, not constants: a constant is a symbol of every image, also of linear's.

/// Whether the problem is one of shared_norm_linear.
template <class AnyShape = Shape>
__device__ constexpr bool shares_norm() {
    return requires { AnyShape::next_norm; };
}
/// Whether it is behind a norm.
__device__ constexpr bool takes_squares() { return shares_norm() && has_norm; }
/// Whether it is in front of one.
template <class AnyShape = Shape>
__device__ constexpr bool gives_squares() {
    if constexpr (shares_norm<AnyShape>()) return AnyShape::next_norm != 0;
    return false;
}

/// A lane's part of a token's squares, which `lanes` lanes share, all of them asked for together; of a token
/// that does not exist, of the last.
template <int lanes = 32, class AnyTensors>
__device__ inline float lane_squares(const AnyTensors& tensors, int64 token,
                                     int lane = static_cast<int>(threadIdx.x) % 32) {
    constexpr int slots = in / square_columns;
    const float* const row = tensors.norm_squares + min(token, int64{tensors.tokens} - 1) * slots;
    float sum = 0.0f;
#pragma unroll
    for (int first = 0; first < slots; first += lanes) {
        const int slot = first + lane;
        if (first + lanes <= slots || slot < slots) sum += row[slot];
    }
    return sum;
}

/// What a token's sums are multiplied with.
template <class AnyTensors>
__device__ inline float norm_factor(const AnyTensors& tensors, float squares) {
    return rsqrtf(squares * (1.0f / in) + tensors.epsilon);
}

/// `warps` warps work out the factors of `tokens` tokens, each those of every warps-th, some of them at a
/// time, and hand each to `keep(token, factor)`, by one lane.
template <int warps, int tokens, class AnyTensors, class Keep>
__device__ inline void find_factors(const AnyTensors& tensors, int warp, Keep keep) {
    constexpr int rounds = (tokens + warps - 1) / warps;
    constexpr int together = rounds < 4 ? rounds : 4;
    for (int round = 0; round < rounds; round += together) {
        float squares[together];
#pragma unroll
        for (int i = 0; i < together; ++i) squares[i] = lane_squares(tensors, warp + (round + i) * warps);
#pragma unroll
        for (int i = 0; i < together; ++i) {
            const int token = warp + (round + i) * warps;
            const float factor = norm_factor(tensors, reduce_lanes<Sum, 32>(squares[i]));
            if (threadIdx.x % 32 == 0 && token < tokens) keep(token, factor);
        }
    }
}

template <class AnyTensors>
__device__ inline void store_scaled(const AnyTensors& tensors, int64 token, int column, float scaled) {
    tensors.scaled[token * out + column] = from_float<Element>(scaled);
}
/// `column`: the slot's first.
template <class AnyTensors>
__device__ inline void store_squares(const AnyTensors& tensors, int64 token, int column, float squares) {
    tensors.squares[token * (out / square_columns) + column / square_columns] = squares;
}

}  // namespace hone::linear
