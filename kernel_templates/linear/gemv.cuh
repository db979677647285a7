// Variant gemv, for 1 to 8 tokens: few_tokens.cuh says how. A warp reads `rows` rows of the weight,
// 512 bytes of each at a time, and multiplies on the CUDA cores: an unpacked access to x serves all rows, an
// unpacked weight all tokens. Lanes' sums meet by shuffles.
#pragma once

#include "device/reduce.cuh"
#include "linear/few_tokens.cuh"

namespace hone::linear::gemv {

inline constexpr int rows = Tuned::rows;
inline constexpr int chunk = 32 * vector;
inline constexpr int chunks = (in + chunk - 1) / chunk;
inline constexpr int batches = (chunks + k_warps * unroll - 1) / (k_warps * unroll);
static_assert(out >= rows, "a warp's rows exist");

struct Held {
    uint4 words[unroll][products][rows];
};

__device__ inline void run(const Tensors& tensors) {
    __shared__ Partials<rows> partials;
    if constexpr (Tuned::programmatic != 0) release_successor();
    const FewTokens call(tensors);
    const int lane = threadIdx.x % 32;
    const int k_warp = threadIdx.x / 32 % k_warps;
    const int group = threadIdx.x / 32 / k_warps;
    const auto column_of = [&](int batch, int u) {
        return ((batch * unroll + u) * k_warps + k_warp) * chunk + lane * vector;
    };
    const auto load = [&](const Rows<rows>& place, int batch, Held& held) {
#pragma unroll
        for (int u = 0; u < unroll; ++u) {
            const int column = readable(column_of(batch, u));
#pragma unroll
            for (int product = 0; product < products; ++product) {
#pragma unroll
                for (int row = 0; row < rows; ++row)
                    held.words[u][product][row] = call.load_weight<32>(product, place.first + row, column);
            }
        }
    };
    float sums[products][rows][block_tokens] = {};
    LaneSquares squares;
    const auto multiply = [&](int batch, const Held& held) {
#pragma unroll
        for (int u = 0; u < unroll; ++u) {
            float x[block_tokens][vector];
#pragma unroll
            for (int token = 0; token < block_tokens; ++token)
                unpack_word(call.load_x<32>(token, column_of(batch, u)), x[token]);
            if constexpr (folds_norm) {
                float norm_weight[vector];
                call.load_norm_weight<32>(column_of(batch, u), norm_weight);
#pragma unroll
                for (int token = 0; token < block_tokens; ++token)
                    fold_norm(x[token], norm_weight, squares.tokens[token]);
            }
#pragma unroll
            for (int product = 0; product < products; ++product) {
#pragma unroll
                for (int row = 0; row < rows; ++row) {
                    float weight[vector];
                    unpack_word(held.words[u][product][row], weight);
#pragma unroll
                    for (int token = 0; token < block_tokens; ++token) {
#pragma unroll
                        for (int i = 0; i < vector; ++i)
                            sums[product][row][token] =
                                fmaf(weight[i], x[token][i], sums[product][row][token]);
                    }
                }
            }
        }
    };
    const auto finish = [&](const Rows<rows>& place, int buffer) {
#pragma unroll
        for (int product = 0; product < products; ++product) {
#pragma unroll
            for (int row = 0; row < rows; ++row) {
#pragma unroll
                for (int token = 0; token < block_tokens; ++token) {
                    const float sum = reduce_lanes<Sum, 32>(sums[product][row][token]);
                    sums[product][row][token] = 0.0f;
                    if (lane == 0) partials.sums[buffer][group][k_warp][product][token][row] = sum;
                }
            }
        }
        if constexpr (takes_factors()) squares.leave(partials, buffer, group, k_warp);
        add_and_store(partials, call, buffer, group, k_warp, place);
    };
    const auto begin = [&] { squares.load(call, k_warp); };
    stream<rows, batches, Held>(call, group, load, begin, multiply, finish);
}

}  // namespace hone::linear::gemv
