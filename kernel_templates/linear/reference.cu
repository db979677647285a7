// Linear, reference: a block computes 64 tokens x 64 results. 16 columns at a time of x and of the weight
// pass through shared memory as floats; a thread adds their products for 4 x 4 results in float32, and those
// short sums in double. A norm is applied to x as floats, its factors come from sums in double. Activations
// in double. out is a float32 array without padding.
#include "linear/exact_activation.cuh"
#include "linear/tensors.cuh"

namespace hone::linear::reference {

inline constexpr int tile = 64;
inline constexpr int depth = 16;
inline constexpr int threads = 256;

/// 64 rows x 16 columns from (row, column) on; zeros beyond the matrix.
__device__ inline void stage(float (&to)[tile][depth + 1], const Element* from, int64 stride, int64 rows,
                             int64 row, int column) {
    for (int i = threadIdx.x; i < tile * depth; i += threads) {
        const int64 r = row + i / depth;
        const int c = column + i % depth;
        to[i / depth][i % depth] = r < rows && c < in ? to_float(from[r * stride + c]) : 0.0f;
    }
}

/// 1 / sqrt(mean(x^2) + epsilon) of 64 tokens, a warp for each of them in turn.
__device__ inline void norm_factors(const Tensors& t, int64 first_token, float (&factors)[tile]) {
    for (int row = threadIdx.x / 32; row < tile; row += threads / 32) {
        const int64 token = min(first_token + row, t.tokens - 1);
        double squares = 0.0;
        for (int column = threadIdx.x % 32; column < in; column += 32) {
            const double value = to_float(t.x[token * t.x_stride + column]);
            squares += value * value;
        }
        for (int distance = 16; distance > 0; distance /= 2)
            squares += __shfl_xor_sync(0xffffffffu, squares, distance);
        factors[row] = static_cast<float>(1.0 / sqrt(squares / in + static_cast<double>(t.epsilon)));
    }
}

/// Applies the norm to what this thread has staged.
__device__ inline void normalize(float (&x)[tile][depth + 1], const float (&factors)[tile],
                                 const Element* norm_weight, int column) {
    for (int i = threadIdx.x; i < tile * depth; i += threads) {
        const int c = column + i % depth;
        if (c < in) x[i / depth][i % depth] *= factors[i / depth] * to_float(norm_weight[c]);
    }
}

/// sums[i][j]: token first_token + 16 i + threadIdx.x / 16, result first_column + 16 j + threadIdx.x % 16.
__device__ inline void multiply(const Tensors& t, const Element* weight, int64 weight_stride,
                                int64 first_token, int64 first_column, double (&sums)[4][4]) {
    __shared__ float x[tile][depth + 1];
    __shared__ float w[tile][depth + 1];
    __shared__ float factors[tile];
    if (has_norm) norm_factors(t, first_token, factors);
    for (int column = 0; column < in; column += depth) {
        __syncthreads();
        stage(x, t.x, t.x_stride, t.tokens, first_token, column);
        if (has_norm) normalize(x, factors, t.norm_weight, column);
        stage(w, weight, weight_stride, out, first_column, column);
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
    multiply(t, t.weight, t.weight_stride, first_token, first_column, sums[0]);
    if (gated) multiply(t, t.up, t.up_stride, first_token, first_column, sums[products - 1]);
    for (int i = 0; i < 4; ++i) {
        for (int j = 0; j < 4; ++j) {
            const int64 token = first_token + 16 * i + threadIdx.x / 16;
            const int64 column = first_column + 16 * j + threadIdx.x % 16;
            if (token >= t.tokens || column >= out) continue;
            double value = sums[0][i][j];
            if (has_bias) value += to_float(t.bias[column]);
            value = activate(value);
            if (gated) value *= sums[products - 1][i][j];
            if (has_residual) value += to_float(t.residual[token * t.residual_stride + column]);
            t.out[token * out + column] = static_cast<float>(value);
        }
    }
}

}  // namespace hone::linear::reference

extern "C" __global__ void __launch_bounds__(256) linear_reference(HONE_PARAMETERS(linear_reference)) {
    const hone::linear::Tensors tensors{HONE_ARGUMENTS(linear_reference)};
    hone::linear::reference::run(tensors);
}
