// Variant plain of the families whose products share norms: a block computes a slot's columns of some tokens,
// a warp `warp_columns` of them one after another; a lane multiplies every 32nd column of x. x and weights
// come from global memory, results of the slot meet in shared memory, where squares are added up between two
// barriers. Who includes this says before what element (column, i) of a product's weight is: weight_at().
#pragma once

#include "device/sync.cuh"
#include "linear/shared_norm.cuh"

namespace hone::linear::plain {

inline constexpr int warps = 8;
inline constexpr int warp_columns = square_columns / warps;
inline constexpr int tokens = static_cast<int>(Tuned::tokens);

/// Sums of a column, of all tokens of the block; of a token that does not exist, of the last.
template <class AnyTensors>
__device__ inline void multiply(const AnyTensors& t, int product, int column, int64 first_token,
                                float (&sums)[tokens]) {
    for (int i = static_cast<int>(threadIdx.x) % 32; i < in; i += 32) {
        const float w = weight_at(t, product, column, i);
#pragma unroll
        for (int k = 0; k < tokens; ++k) {
            const int64 token = min(first_token + k, t.tokens - 1);
            sums[k] = fmaf(to_float(t.x[token * t.x_stride + i]), w, sums[k]);
        }
    }
#pragma unroll
    for (int k = 0; k < tokens; ++k) sums[k] = reduce_lanes<Sum, 32>(sums[k]);
}

template <class AnyTensors>
__device__ inline void find_factors(const AnyTensors& t, int64 first_token, float (&factors)[tokens]) {
#pragma unroll
    for (int k = 0; k < tokens; ++k) {
        factors[k] = 1.0f;
        if constexpr (takes_squares())
            factors[k] = norm_factor(t, reduce_lanes<Sum, 32>(lane_squares(t, first_token + k)));
    }
}

/// Of lane k, token k's result.
template <class AnyTensors>
__device__ inline void give(const AnyTensors& t, int64 token, int column, float value, float& square) {
    if constexpr (gives_squares()) {
        store_scaled(t, token, column, value * to_float(t.norm_weight[column]));
        square = value * value;
    }
}

template <class AnyTensors>
__device__ inline void add_squares(const AnyTensors& t, int64 first_token, int first_column,
                                   const float (&squares)[tokens][square_columns]) {
    if constexpr (gives_squares()) {
        __syncthreads();
        const int warp = static_cast<int>(threadIdx.x) / 32;
        for (int k = warp; k < tokens && first_token + k < t.tokens; k += warps) {
            const float sum = reduce_lanes<Sum, square_columns>(squares[k][threadIdx.x % square_columns]);
            if (threadIdx.x % 32 == 0) store_squares(t, first_token + k, first_column, sum);
        }
        __syncthreads();
    }
}

/// Results of the slot that begins at `first_column`.
template <class AnyTensors>
__device__ inline void run_slot(const AnyTensors& t, int64 first_token, int first_column,
                                float (&squares)[tokens][square_columns]) {
    float factors[tokens];
    find_factors(t, first_token, factors);
    for (int i = 0; i < warp_columns; ++i) {
        const int place = static_cast<int>(threadIdx.x) / 32 * warp_columns + i;
        const int column = first_column + place;
        if (column >= out) break;
        float sums[products][tokens] = {};
        for (int product = 0; product < products; ++product)
            multiply(t, product, column, first_token, sums[product]);
#pragma unroll
        for (int k = 0; k < tokens; ++k) {
            if (static_cast<int>(threadIdx.x) % 32 != k || first_token + k >= t.tokens) continue;
            float scaled[products];
#pragma unroll
            for (int product = 0; product < products; ++product)
                scaled[product] = sums[product][k] * factors[k];
            const float value = t.finish(first_token + k, column, scaled);
            t.out[(first_token + k) * t.out_stride + column] = from_float<Element>(value);
            give(t, first_token + k, column, value, squares[k][place]);
        }
    }
    add_squares(t, first_token, first_column, squares);
}

template <class AnyTensors>
__device__ inline void run(const AnyTensors& t) {
    __shared__ float squares[tokens][square_columns];
    constexpr int slots = (out + square_columns - 1) / square_columns;
    if constexpr (Tuned::programmatic != 0) {
        release_successor();
        wait_for_predecessor();
    }
    const int64 count = (t.tokens + tokens - 1) / tokens * slots;
    for (int64 piece = blockIdx.x; piece < count; piece += gridDim.x)
        run_slot(t, piece / slots * tokens, static_cast<int>(piece % slots) * square_columns, squares);
}

}  // namespace hone::linear::plain
