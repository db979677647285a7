// Norm, reference: one block a row, everything in double, one straightforward pass for each sum. Outputs are
// float32 arrays: codes of a quantized output as their decoded values. With a residual the sum is rounded to
// the element type first, because that is the row that gets normalized.
#pragma once

#include "norm/row.cuh"

namespace hone::norm::reference {

__device__ inline double block_sum(double value) {
    __shared__ double partials[256];
    __syncthreads();
    partials[threadIdx.x] = value;
    __syncthreads();
    double total = 0;
    for (int i = 0; i < 256; ++i) total += partials[i];
    return total;
}

__device__ inline double block_max(double value) {
    __shared__ double partials[256];
    __syncthreads();
    partials[threadIdx.x] = value;
    __syncthreads();
    double largest = 0;
    for (int i = 0; i < 256; ++i) largest = partials[i] > largest ? partials[i] : largest;
    return largest;
}

__device__ inline double row_value(const Tensors& tensors, int64 index, int column) {
    const float value = to_float(tensors.x[index * tensors.x_stride + column]);
    if (!has_residual) return value;
    const float addend = to_float(tensors.residual[index * tensors.residual_stride + column]);
    return to_float(from_float<Element>(value + addend));
}

struct RowStatistic {
    double mean;
    double factor;
};

__device__ inline RowStatistic statistic(const Tensors& tensors, int64 index) {
    double mean = 0;
    if (layer_norm) {
        double sum = 0;
        for (int column = threadIdx.x; column < hidden; column += 256)
            sum += row_value(tensors, index, column);
        mean = block_sum(sum) / hidden;
    }
    double squares = 0;
    for (int column = threadIdx.x; column < hidden; column += 256) {
        const double centred = row_value(tensors, index, column) - mean;
        squares += centred * centred;
    }
    return {mean, 1.0 / sqrt(block_sum(squares) / hidden + static_cast<double>(tensors.epsilon))};
}

__device__ inline double result(const Tensors& tensors, int64 index, int column, RowStatistic row) {
    const double weight = to_float(tensors.weight[column]) + (unit_offset ? 1.0 : 0.0);
    const double bias = has_bias ? static_cast<double>(to_float(tensors.bias[column])) : 0.0;
    return (row_value(tensors, index, column) - row.mean) * row.factor * weight + bias;
}

__device__ inline void run(const Tensors& tensors) {
    const int64 index = blockIdx.x;
    const RowStatistic row = statistic(tensors, index);
    double largest = 0;
    for (int column = threadIdx.x; column < hidden; column += 256) {
        const double magnitude = fabs(result(tensors, index, column, row));
        largest = magnitude > largest ? magnitude : largest;
    }
    largest = block_max(largest);
    const float scale = largest > 0 ? static_cast<float>(largest / largest_code) : 1.0f;
    for (int column = threadIdx.x; column < hidden; column += 256) {
        const double y = result(tensors, index, column, row);
        tensors.out[index * hidden + column] =
            quantized ? to_float(from_float<Output>(static_cast<float>(y / scale))) : static_cast<float>(y);
        if (has_residual)
            tensors.sum[index * hidden + column] = static_cast<float>(row_value(tensors, index, column));
    }
    if (quantized && threadIdx.x == 0) tensors.scale[index] = scale;
}

}  // namespace hone::norm::reference

extern "C" __global__ void __launch_bounds__(256) norm_reference(HONE_PARAMETERS(norm_reference)) {
    const hone::norm::Tensors tensors{HONE_ARGUMENTS(norm_reference)};
    hone::norm::reference::run(tensors);
}
