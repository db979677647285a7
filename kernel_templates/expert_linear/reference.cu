// Linear layers of experts, reference: a block takes 64 columns of one expert's results and goes through all
// of that expert's rows, 64 at a time. 16 columns at a time of x and of the weight pass through shared memory
// as floats; a thread adds their products for 4 x 4 results in float32, and those short sums in double.
// Activations in double. What is combined stands as floats, not rounded, in the workspace; a thread then adds
// up one result's slots in double. The output is float32 without padding.
#include "expert_linear/exact_results.cuh"
#include "expert_linear/weights.cuh"

namespace hone::expert_linear::reference {

inline constexpr int tile = 64;
inline constexpr int depth = 16;
inline constexpr int threads = 256;

__device__ inline int start(const Tensors& t, int expert) {
    return min(max(t.starts[expert], 0), t.places());
}

/// 64 rows x 16 columns; `row` says where each begins, nullptr where there is none.
template <class Row>
__device__ inline void stage(float (&to)[tile][depth + 1], int column, Row row) {
    for (int i = threadIdx.x; i < tile * depth; i += threads) {
        const Element* const from = row(i / depth);
        const int c = column + i % depth;
        to[i / depth][i % depth] = from != nullptr && c < in ? to_float(from[c]) : 0.0f;
    }
}

/// sums[i][j]: row first + 16 i + threadIdx.x / 16, result first_column + 16 j + threadIdx.x % 16.
__device__ inline void multiply(const Tensors& t, const Element* weight, int first, int end, int first_column,
                                double (&sums)[4][4]) {
    __shared__ float x[tile][depth + 1];
    __shared__ float w[tile][depth + 1];
    for (int column = 0; column < in; column += depth) {
        __syncthreads();
        stage(x, column, [&](int row) { return first + row < end ? t.x_at(first + row) : nullptr; });
        stage(w, column, [&](int row) {
            return first_column + row < columns ? weight + static_cast<int64>(first_column + row) * in
                                                : nullptr;
        });
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
    to[column] = static_cast<float>(exact::result(t, expert, column, first, second));
}

__device__ inline void run(const Tensors& t) {
    constexpr int across = (columns + tile - 1) / tile;
    const int expert = static_cast<int>(blockIdx.x / across);
    const int first_column = static_cast<int>(blockIdx.x % across) * tile;
    const int end = start(t, expert + 1);
    for (int first = start(t, expert); first < end; first += tile) {
        double sums[2][4][4] = {};
        multiply(t, weight_of(t, 0, expert), first, end, first_column, sums[0]);
        if (gated) multiply(t, weight_of(t, 1, expert), first, end, first_column, sums[1]);
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
    for (int slot = 0; slot < top_k; ++slot) {
        const double result = t.workspace[(token * top_k + slot) * columns + index % columns];
        sum += t.routing_weights[token * top_k + slot] * result;
    }
    t.out[index] = static_cast<float>(sum);
}

}  // namespace hone::expert_linear::reference

extern "C" __global__ void __launch_bounds__(256)
    expert_linear_reference(HONE_PARAMETERS(expert_linear_reference)) {
    const hone::expert_linear::Tensors tensors{HONE_ARGUMENTS(expert_linear_reference)};
    hone::expert_linear::reference::run(tensors);
}
extern "C" __global__ void __launch_bounds__(256)
    expert_linear_reference_combine(HONE_PARAMETERS(expert_linear_reference_combine)) {
    const hone::expert_linear::Tensors tensors{HONE_ARGUMENTS(expert_linear_reference_combine)};
    if (hone::expert_linear::combines) hone::expert_linear::reference::combine(tensors);
}
