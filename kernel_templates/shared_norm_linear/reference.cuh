// Reference of the families whose products share norms: a block computes a slot's columns of a token, a warp
// a column, and then those of other tokens. Products are added up in double, a lane every 32nd; squares are
// those of results that are not rounded. Outputs are float32 arrays without padding. Who includes this says
// before what element (column, i) of a product's weight is: weight_at().
#pragma once

#include "linear/exact_activation.cuh"
#include "linear/shared_norm.cuh"

namespace hone::linear::reference {

__device__ inline double add_lanes(double value) {
    for (int distance = 16; distance > 0; distance /= 2)
        value += __shfl_xor_sync(0xffffffffu, value, distance);
    return value;
}

template <class AnyTensors>
__device__ inline double product_of(const AnyTensors& t, int product, int64 token, int column) {
    double sum = 0.0;
    for (int i = static_cast<int>(threadIdx.x) % 32; i < in; i += 32)
        sum += static_cast<double>(to_float(t.x[token * t.x_stride + i])) * weight_at(t, product, column, i);
    return add_lanes(sum);
}

template <class AnyTensors>
__device__ inline double factor(const AnyTensors& t, int64 token) {
    if constexpr (takes_squares()) {
        double sum = 0.0;
        for (int slot = static_cast<int>(threadIdx.x) % 32; slot < in / square_columns; slot += 32)
            sum += t.norm_squares[token * (in / square_columns) + slot];
        return 1.0 / sqrt(add_lanes(sum) / in + static_cast<double>(t.epsilon));
    }
    return 1.0;
}

template <class AnyTensors>
__device__ inline double result(const AnyTensors& t, int64 token, int column) {
    const double factor_of_token = factor(t, token);
    double value = factor_of_token * product_of(t, 0, token, column);
    if (has_bias) value += to_float(t.bias[column]);
    value = activate(value);
    if (gated) value *= factor_of_token * product_of(t, 1, token, column);
    if (has_residual) value += to_float(t.residual[token * t.residual_stride + column]);
    return value;
}

template <class AnyTensors>
__device__ inline void give(const AnyTensors& t, int64 token, int column, double value) {
    if constexpr (gives_squares()) {
        __shared__ double squares[square_columns];
        if (threadIdx.x % 32 == 0) {
            t.scaled[token * out + column] = static_cast<float>(value * to_float(t.norm_weight[column]));
            squares[column % square_columns] = value * value;
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            double sum = 0.0;
            for (const double square : squares) sum += square;
            t.squares[token * (out / square_columns) + column / square_columns] = static_cast<float>(sum);
        }
        __syncthreads();
    }
}

template <class AnyTensors>
__device__ inline void run(const AnyTensors& t) {
    constexpr int slots = (out + square_columns - 1) / square_columns;
    for (int64 piece = blockIdx.x; piece < t.tokens * slots; piece += gridDim.x) {
        const int64 token = piece / slots;
        const int column =
            static_cast<int>(piece % slots) * square_columns + static_cast<int>(threadIdx.x) / 32;
        if (column >= out) continue;  // not where squares are given: whole slots
        const double value = result(t, token, column);
        if (threadIdx.x % 32 == 0) t.out[token * out + column] = static_cast<float>(value);
        give(t, token, column, value);
    }
}

}  // namespace hone::linear::reference
