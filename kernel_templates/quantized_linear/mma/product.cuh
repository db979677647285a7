// The products of variant mma (kernel.cu), for calls with a row of x for each token and for experts' rows
// alike (quantized_expert_linear): what warps hold, how they walk over `in`, and where their sums meet.
#pragma once

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
template <class Staged, class T>
__device__ inline void multiply_panel(const Staged& x, int batch, int index,
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
template <class Staged, int rows>
__device__ inline void multiply_panel(const Staged& x, int batch, int index,
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

template <class Staged>
__device__ inline void multiply(const Staged& x, const Warp& warp, int batch, const Held& held, Sums& sums) {
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

/// The batches behind the first, whose weights are in `held` and whose x is asked for, and all products.
/// Barriers: one a batch, and one behind the last.
template <class Staged>
__device__ inline void multiply_all(const Tensors& tensors, const Staged& x, const Warp& warp, Held& held,
                                    Sums& sums) {
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
}

/// Sums of token `token` of the 8 that put() left, in column `row` of the block: the warps' added in order,
/// without factors.
__device__ inline void join_warps(const float* partials, int token, int row, float (&sums)[products]) {
#pragma unroll
    for (int product = 0; product < products; ++product) {
        sums[product] = 0.0f;
#pragma unroll
        for (int warp = 0; warp < geometry.k_warps; ++warp)
            sums[product] += partials[partial_place(warp, product, token, row)];
    }
}

}  // namespace hone::quantized_linear::mma_blocks
