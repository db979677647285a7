// Linear layers of experts with quantized weights, reference: as expert_linear's (reference.cu there says
// how), with the floats that codes stand for. What becomes codes in front of the products is rounded to codes
// here, too.
#include "quantized_expert_linear/tensors.cuh"

#include "expert_linear/exact_results.cuh"

namespace hone::quantized_expert_linear::reference {

inline constexpr int tile = 64;
inline constexpr int depth = 16;
inline constexpr int threads = 256;

__device__ inline int start(const Tensors& t, int expert) {
    return min(max(t.starts[expert], 0), t.places());
}

/// A row of x at a place, as it is multiplied: where weights are codes in rows, rounded to codes in the steps
/// of codes.cuh, since a number half-way between two codes may become either.
__device__ inline float x_of(float value, float scale) {
    if constexpr (is_packed) return value;
    return to_float(from_float<Code>(value * (1.0f / scale))) * scale;
}

/// Scales of codes of 64 rows in the columns [begin, end).
__device__ inline void find_scales(const Tensors& t, int first, int last, int begin, int end,
                                   float (&scales)[tile]) {
    for (int row = threadIdx.x / 32; row < tile; row += threads / 32) {
        const Element* const from = t.x_at(min(first + row, last - 1));
        float largest = 0.0f;
        for (int column = begin + threadIdx.x % 32; column < end; column += 32)
            largest = fmaxf(largest, fabsf(to_float(from[column])));
        for (int distance = 16; distance > 0; distance /= 2)
            largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, distance));
        scales[row] =
            fmaxf(largest, quantized_linear::least_magnitude) * (1.0f / quantized_linear::largest_code);
    }
    __syncthreads();
}

/// sums[i][j]: row first + 16 i + threadIdx.x / 16, result first_column + 16 j + threadIdx.x % 16.
__device__ inline void multiply(const Tensors& t, const quantized_linear::Weight& weight, int first, int end,
                                int first_column, double (&sums)[4][4]) {
    __shared__ float x[tile][depth + 1];
    __shared__ float w[tile][depth + 1];
    __shared__ float scales[tile];
    __syncthreads();
    if constexpr (!is_packed && !has_blocks) find_scales(t, first, end, 0, in, scales);
    for (int column = 0; column < in; column += depth) {
        __syncthreads();
        if constexpr (has_blocks) {
            if (column % scaled_block == 0)
                find_scales(t, first, end, column, min(column + scaled_block, in), scales);
        }
        for (int i = threadIdx.x; i < tile * depth; i += threads) {
            const int row = i / depth;
            const int c = column + i % depth;
            const bool exists = c < in && first + row < end;
            x[row][i % depth] = exists ? x_of(to_float(t.x_at(first + row)[c]), scales[row]) : 0.0f;
            w[row][i % depth] =
                c < in && first_column + row < columns ? weight.value(first_column + row, c) : 0.0f;
        }
        __syncthreads();
        for (int i = 0; i < 4; ++i) {
            for (int j = 0; j < 4; ++j) {
                float sum = 0.0f;
                for (int k = 0; k < depth; ++k)
                    sum = fmaf(x[16 * i + threadIdx.x / 16][k], w[16 * j + threadIdx.x % 16][k], sum);
                sums[i][j] += sum;
            }
        }
    }
}

__device__ inline float* result_at(const Tensors& t, int place) {
    if (!combines) return t.out + static_cast<int64>(place) * columns;
    const int pair = t.rows[place];
    return pair < 0 || pair >= t.places() ? nullptr : t.workspace + static_cast<int64>(pair) * columns;
}

__device__ inline void write(const Tensors& t, int expert, int place, int column, double first,
                             double second) {
    float* const to = result_at(t, place);
    if (to == nullptr || column >= columns) return;
    to[column] = static_cast<float>(expert_linear::exact::result(t, expert, column, first, second));
}

__device__ inline void run(const Tensors& t) {
    constexpr int across = (columns + tile - 1) / tile;
    const int expert = static_cast<int>(blockIdx.x / across);
    const int first_column = static_cast<int>(blockIdx.x % across) * tile;
    const int end = start(t, expert + 1);
    for (int first = start(t, expert); first < end; first += tile) {
        double sums[2][4][4] = {};
        multiply(t, of_expert(t, expert).weight_of(0), first, end, first_column, sums[0]);
        if (linear::gated) multiply(t, of_expert(t, expert).weight_of(1), first, end, first_column, sums[1]);
        for (int i = 0; i < 4; ++i) {
            const int place = first + 16 * i + static_cast<int>(threadIdx.x) / 16;
            for (int j = 0; j < 4 && place < end; ++j) {
                const int column = first_column + 16 * j + static_cast<int>(threadIdx.x) % 16;
                write(t, expert, place, column, sums[0][i][j], sums[1][i][j]);
            }
        }
    }
}

__device__ inline void combine(const Tensors& t) {
    const int64 index = static_cast<int64>(blockIdx.x) * threads + threadIdx.x;
    const int64 token = index / columns;
    if (token >= t.tokens) return;
    double sum = 0.0;
    for (int slot = 0; slot < expert_linear::top_k; ++slot) {
        const double result = t.workspace[(token * expert_linear::top_k + slot) * columns + index % columns];
        sum += t.routing_weights[token * expert_linear::top_k + slot] * result;
    }
    t.out[index] = static_cast<float>(sum);
}

}  // namespace hone::quantized_expert_linear::reference

extern "C" __global__ void __launch_bounds__(256)
    quantized_expert_linear_reference(HONE_PARAMETERS(quantized_expert_linear_reference)) {
    const hone::expert_linear::Tensors tensors{HONE_ARGUMENTS(quantized_expert_linear_reference)};
    hone::quantized_expert_linear::reference::run(tensors);
}
extern "C" __global__ void __launch_bounds__(256)
    quantized_expert_linear_reference_combine(HONE_PARAMETERS(quantized_expert_linear_reference_combine)) {
    const hone::expert_linear::Tensors tensors{HONE_ARGUMENTS(quantized_expert_linear_reference_combine)};
    if (hone::quantized_expert_linear::combines) hone::quantized_expert_linear::reference::combine(tensors);
}
