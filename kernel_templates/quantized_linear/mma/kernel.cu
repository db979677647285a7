// Quantized linear, variant mma: few tokens to some hundreds, warp-level tensor cores (sm_75, fp16 and int8
// alone there). A block computes `tokens` x `rows` * row_warps results: k_warps warps share rows and split
// `in` between them. More tokens are more blocks, those of the same weights side by side, so that the weights
// come from level 2.
//
// Data's way: weights come from global memory straight into registers as the left operand has them
// (weights.cuh), a batch of `unroll` panels of 64 columns a warp, one batch ahead of the one being
// multiplied; the first before the wait for the kernel that writes x. x comes a batch ahead too, by
// asynchronous copies (before sm_80 through registers) into one of two buffers in shared memory that all
// warps share (x.cuh). One barrier a batch: behind it a batch has landed for all, and nobody reads the
// buffer of the batch before, into which the next is then copied.
//
// Codes of packed weights are widened to 16 bits and multiplied with their group's scale in registers; other
// scales are multiplied with sums: those of 128 x 128 blocks panel by panel, those of rows and tokens at the
// end. There the warps' sums meet in shared memory, where x was, 8 tokens at a time in turn in two places:
// one barrier each.
#include "quantized_linear/mma/weights.cuh"
#include "quantized_linear/mma/x.cuh"

namespace hone::quantized_linear::mma_blocks {

inline constexpr int row_blocks = geometry.rows / 16;
inline constexpr int token_blocks = geometry.tokens / 8;
inline constexpr int unroll = geometry.unroll;
inline constexpr int batches = (panels + geometry.panels() - 1) / geometry.panels();
static_assert(in % 16 == 0, "rows of x and of codes are whole chunks of 16 bytes");

struct Held {
    Panel panels[unroll][products][row_blocks];
};
struct Sums {
    Conditional<format == Format::w8a8, IntMmaSums, MmaSums>::type values[products][row_blocks][token_blocks];
};

/// What a warp works on.
struct Warp {
    __device__ explicit Warp(int step)
        : k(threadIdx.x / 32 % geometry.k_warps),
          group(threadIdx.x / 32 / geometry.k_warps),
          first_row(step * geometry.block_rows() + group * geometry.rows) {}
    /// The warp's u-th panel of a batch of x.
    __device__ int panel(int u) const { return k * unroll + u; }

    int k;
    int group;
    int first_row;
};

__device__ inline void load(const Tensors& tensors, const Warp& warp, int batch, Held& held) {
#pragma unroll
    for (int u = 0; u < unroll; ++u) {
        const int index = min(batch * geometry.panels() + warp.panel(u), panels - 1);
#pragma unroll
        for (int product = 0; product < products; ++product) {
#pragma unroll
            for (int b = 0; b < row_blocks; ++b)
                Panel::load(tensors.weight_of(product), warp.first_row + 16 * b, index,
                            held.panels[u][product][b]);
        }
    }
}

/// One panel of packed weights, 32 columns at a time.
template <class T>
__device__ inline void multiply_panel(const X& x, int batch, int index,
                                      const PackedPanel<T> (&weights)[products][row_blocks], Sums& sums) {
#pragma unroll
    for (int step = 0; step < 2; ++step) {
        uint32 a[products][row_blocks][8];
#pragma unroll
        for (int product = 0; product < products; ++product) {
#pragma unroll
            for (int b = 0; b < row_blocks; ++b) {
#pragma unroll
                for (int i = 0; i < 8; ++i)
                    a[product][b][i] = weights[product][b].values(2 * step + i / 4, i % 4);
            }
        }
#pragma unroll
        for (int n = 0; n < token_blocks; ++n) {
            uint32 words[4];
            x.load(words, batch, index, step, n);
#pragma unroll
            for (int product = 0; product < products; ++product) {
#pragma unroll
                for (int b = 0; b < row_blocks; ++b) {
                    const uint32(&w)[8] = a[product][b];
                    auto& to = sums.values[product][b][n];
                    multiply_16<T>(to, w[0], w[1], w[2], w[3], words[0], words[1]);
                    multiply_16<T>(to, w[4], w[5], w[6], w[7], words[2], words[3]);
                }
            }
        }
    }
}

template <class PanelSums>
__device__ inline void multiply_rows(PanelSums& to, const RowPanel& weight, const uint4& x) {
    const uint4& low = weight.rows[0];
    const uint4& high = weight.rows[1];
    multiply_32(to, low.x, high.x, low.y, high.y, x.x, x.y);
    multiply_32(to, low.z, high.z, low.w, high.w, x.z, x.w);
}

template <class PanelSums>
__device__ inline void multiply_scaled(PanelSums& to, const RowPanel& weight, const uint4& word,
                                       const float (&x_scales)[2]) {
    if constexpr (has_blocks) {
        PanelSums of_panel = {};
        multiply_rows(of_panel, weight, word);
#pragma unroll
        for (int i = 0; i < 4; ++i)
            to.values[i] = fmaf(of_panel.values[i], weight.scale * x_scales[i % 2], to.values[i]);
    } else {
        multiply_rows(to, weight, word);
    }
}
/// One panel of codes that stand in rows.
template <int rows>
__device__ inline void multiply_panel(const X& x, int batch, int index,
                                      const RowPanel (&weights)[products][rows], Sums& sums) {
#pragma unroll
    for (int n = 0; n < token_blocks; ++n) {
        const uint4 word = x.load(batch, index, n);
        float x_scales[2] = {1.0f, 1.0f};
        if constexpr (has_blocks) {
#pragma unroll
            for (int i = 0; i < 2; ++i) x_scales[i] = x.scale(batch, index, n, i);
        }
#pragma unroll
        for (int product = 0; product < products; ++product) {
#pragma unroll
            for (int b = 0; b < rows; ++b)
                multiply_scaled(sums.values[product][b][n], weights[product][b], word, x_scales);
        }
    }
}

__device__ inline void multiply(const X& x, const Warp& warp, int batch, const Held& held, Sums& sums) {
#pragma unroll
    for (int u = 0; u < unroll; ++u) multiply_panel(x, batch, warp.panel(u), held.panels[u], sums);
}

/// Partial sums of 8 tokens: [k_warps][products][8][partial_pitch].
__device__ inline int partial_place(int k_warp, int product, int token, int row) {
    return ((k_warp * products + product) * joined_tokens + token) * geometry.partial_pitch() + row;
}

__device__ inline void put(float* partials, const Warp& warp, const Sums& sums, int n) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int product = 0; product < products; ++product) {
#pragma unroll
        for (int b = 0; b < row_blocks; ++b) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int row = warp.group * geometry.rows + b * 16 + lane / 4 + i / 2 * 8;
                partials[partial_place(warp.k, product, lane % 4 * 2 + i % 2, row)] =
                    static_cast<float>(sums.values[product][b][n].values[i]);
            }
        }
    }
}

/// Adds the warps' sums of 8 tokens in order and writes the results.
__device__ inline void join(const Tensors& tensors, const float* partials, int64 first_token, int first_row) {
#pragma unroll 1
    for (int i = threadIdx.x; i < geometry.block_rows() * joined_tokens; i += geometry.threads()) {
        const int row = i % geometry.block_rows();
        const int64 token = first_token + i / geometry.block_rows();
        if (first_row + row >= out || token >= tensors.tokens) continue;
        const float x_scale =
            is_packed || has_blocks ? 1.0f : tensors.x_scales[token * tensors.x_scale_stride];
        float sums[products] = {};
#pragma unroll
        for (int product = 0; product < products; ++product) {
#pragma unroll
            for (int warp = 0; warp < geometry.k_warps; ++warp)
                sums[product] += partials[partial_place(warp, product, i / geometry.block_rows(), row)];
            sums[product] *= x_scale * row_factor(tensors.weight_of(product), first_row + row);
        }
        tensors.out[token * tensors.out_stride + first_row + row] =
            from_float<Element>(tensors.finish(token, first_row + row, sums));
    }
}

__device__ inline void run(const Tensors& tensors, float* shared) {
    if constexpr (Tuned::programmatic != 0) release_successor();
    const uint32 token_groups = (static_cast<uint32>(tensors.tokens) + geometry.tokens - 1) / geometry.tokens;
    const int64 first_token = static_cast<int64>(blockIdx.x % token_groups) * geometry.tokens;
    const int step = blockIdx.x / token_groups;
    const Warp warp(step);
    const X x(tensors, first_token, shared_address(shared));

    Held held;
    load(tensors, warp, 0, held);
    if constexpr (Tuned::programmatic != 0) wait_for_predecessor();
    x.copy(0);
    Sums sums = {};
#pragma unroll 1
    for (int batch = 0; batch < batches; ++batch) {
        wait_for_copies<0>();
        __syncthreads();
        const Held current = held;
        if (batch + 1 < batches) {
            load(tensors, warp, batch + 1, held);
            x.copy(batch + 1);
        }
        multiply(x, warp, batch, current, sums);
    }
    __syncthreads();
#pragma unroll
    for (int n = 0; n < token_blocks; ++n) {
        float* const partials = shared + n % 2 * geometry.partial_floats();
        put(partials, warp, sums, n);
        __syncthreads();
        join(tensors, partials, first_token + n * joined_tokens, step * geometry.block_rows());
    }
}

}  // namespace hone::quantized_linear::mma_blocks

extern "C" __global__ void __launch_bounds__(hone::quantized_linear::mma_blocks::geometry.threads())
    quantized_linear_mma(HONE_PARAMETERS(quantized_linear_mma)) {
    const hone::quantized_linear::Tensors tensors{HONE_ARGUMENTS(quantized_linear_mma)};
    extern __shared__ __align__(128) float shared[];
    hone::quantized_linear::mma_blocks::run(tensors, shared);
}

namespace hone::linear::normalize {
inline constexpr int vector = 8;
}
namespace hone::quantized_linear::quantize {
inline constexpr int vector = 8;
}

#include "linear/normalize.cuh"
#include "quantized_linear/quantize.cuh"
