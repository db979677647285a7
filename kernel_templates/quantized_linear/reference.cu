// Quantized linear, reference: a block computes 64 tokens x 64 results. 16 columns at a time of x and of the
// weight pass through shared memory as the numbers that their codes stand for; a thread adds their products
// for 4 x 4 results in float32, and those short sums in double. What becomes codes in front of the products
// is rounded to codes here, too, in the steps of quantize.cuh, since a number half-way between two codes may
// become either: by the largest magnitude of its row, or of 128 columns. out is a float32 array without
// padding.
#include "linear/exact_activation.cuh"
#include "quantized_linear/tensors.cuh"

namespace hone::quantized_linear::reference {

inline constexpr int tile = 64;
inline constexpr int depth = 16;
inline constexpr int threads = 256;

/// What a norm multiplies 64 tokens with, and the scale of their codes in a span of columns.
struct RowFactors {
    float norm[tile];
    float scale[tile];
};

/// x, times the norm's weight where there is one.
__device__ inline float weighted_x(const Tensors& t, int64 token, int column) {
    const float value = t.x_value(token, column);
    if constexpr (linear::has_norm) return value * to_float(t.norm_weight[column]);
    return value;
}

/// A warp for each token in turn.
__device__ inline void find_norms(const Tensors& t, int64 first_token, RowFactors& factors) {
    for (int row = threadIdx.x / 32; row < tile; row += threads / 32) {
        const int64 token = min(first_token + row, t.tokens - 1);
        double squares = 0.0;
        for (int column = threadIdx.x % 32; column < in; column += 32) {
            const double value = t.x_value(token, column);
            squares += value * value;
        }
        for (int distance = 16; distance > 0; distance /= 2)
            squares += __shfl_xor_sync(0xffffffffu, squares, distance);
        factors.norm[row] = static_cast<float>(1.0 / sqrt(squares / in + static_cast<double>(t.epsilon)));
    }
    __syncthreads();
}

/// The scales of codes in the columns [begin, end).
__device__ inline void find_scales(const Tensors& t, int64 first_token, int begin, int end,
                                   RowFactors& factors) {
    for (int row = threadIdx.x / 32; row < tile; row += threads / 32) {
        const int64 token = min(first_token + row, t.tokens - 1);
        float largest = 0.0f;
        for (int column = begin + threadIdx.x % 32; column < end; column += 32)
            largest = fmaxf(largest, fabsf(weighted_x(t, token, column)));
        for (int distance = 16; distance > 0; distance /= 2)
            largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, distance));
        factors.scale[row] = fmaxf(largest * factors.norm[row], least_magnitude) * (1.0f / largest_code);
    }
}

/// x as it is multiplied.
__device__ inline float x_of(const Tensors& t, int64 token, int column, float norm, float scale) {
    const float value = weighted_x(t, token, column);
    if constexpr (quantizes_x) return to_float(from_float<Code>(value * (norm / scale))) * scale;
    return value * norm;
}

/// 64 tokens x 16 columns; zeros beyond the matrix.
__device__ inline void stage_x(float (&to)[tile][depth + 1], const Tensors& t, int64 first_token, int column,
                               const RowFactors& factors) {
    for (int i = threadIdx.x; i < tile * depth; i += threads) {
        const int row = i / depth;
        const int c = column + i % depth;
        float value = 0.0f;
        if (first_token + row < t.tokens && c < in)
            value = x_of(t, first_token + row, c, factors.norm[row], factors.scale[row]);
        to[row][i % depth] = value;
    }
}

__device__ inline void stage_weight(float (&to)[tile][depth + 1], const Weight& weight, int64 first_row,
                                    int column) {
    for (int i = threadIdx.x; i < tile * depth; i += threads) {
        const int64 row = first_row + i / depth;
        const int c = column + i % depth;
        to[i / depth][i % depth] = row < out && c < in ? weight.value(row, c) : 0.0f;
    }
}

/// sums[i][j]: token first_token + 16 i + threadIdx.x / 16, result first_column + 16 j + threadIdx.x % 16.
__device__ inline void multiply(const Tensors& t, const Weight& weight, int64 first_token, int64 first_column,
                                double (&sums)[4][4]) {
    __shared__ float x[tile][depth + 1];
    __shared__ float w[tile][depth + 1];
    __shared__ RowFactors factors;
    if (threadIdx.x < tile) factors.norm[threadIdx.x] = factors.scale[threadIdx.x] = 1.0f;
    __syncthreads();
    if constexpr (linear::has_norm) find_norms(t, first_token, factors);
    if constexpr (quantizes_x && !has_blocks) find_scales(t, first_token, 0, in, factors);
    for (int column = 0; column < in; column += depth) {
        __syncthreads();
        if constexpr (quantizes_x && has_blocks) {
            if (column % scaled_block == 0) {
                find_scales(t, first_token, column, min(column + scaled_block, in), factors);
                __syncthreads();
            }
        }
        stage_x(x, t, first_token, column, factors);
        stage_weight(w, weight, first_column, column);
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

__device__ inline void run(const Tensors& t) {
    constexpr int across = (out + tile - 1) / tile;
    const int64 first_token = static_cast<int64>(blockIdx.x / across) * tile;
    const int64 first_column = static_cast<int64>(blockIdx.x % across) * tile;
    double sums[products][4][4] = {};
    multiply(t, t.weight_of(0), first_token, first_column, sums[0]);
    if constexpr (gated) multiply(t, t.weight_of(1), first_token, first_column, sums[products - 1]);
    for (int i = 0; i < 4; ++i) {
        for (int j = 0; j < 4; ++j) {
            const int64 token = first_token + 16 * i + threadIdx.x / 16;
            const int64 column = first_column + 16 * j + threadIdx.x % 16;
            if (token >= t.tokens || column >= out) continue;
            double value = sums[0][i][j];
            if constexpr (has_bias) value += to_float(t.bias[column]);
            value = linear::reference::activate(value);
            if constexpr (gated) value *= sums[products - 1][i][j];
            if constexpr (has_residual) value += to_float(t.residual[token * t.residual_stride + column]);
            t.out[token * out + column] = static_cast<float>(value);
        }
    }
}

}  // namespace hone::quantized_linear::reference

extern "C" __global__ void __launch_bounds__(256)
    quantized_linear_reference(HONE_PARAMETERS(quantized_linear_reference)) {
    const hone::quantized_linear::Tensors tensors{HONE_ARGUMENTS(quantized_linear_reference)};
    using namespace hone::quantized_linear;
    reference::run(tensors);
}
