// Linear, variant mma, for up to some dozens of tokens: few_tokens.cuh says how. A warp reads `rows` rows of
// the weight and multiplies with mma.m16n8k16, weights as the left operand, 8 tokens a block of columns.
//
// Fragments without shared memory: of 32 columns, lane l = 4 g + t reads 8 neighbouring ones (16 bytes, from
// column 8 t) of weight rows g and g + 8 and of token g. The instruction wants columns 2t, 2t + 1, 2t + 8, 2t
// + 9 of 16; which column is which does not matter to a sum as long as both operands agree, so the first 4 of
// the 8 serve one instruction and the last 4 the next.
//
// Where a norm is folded, x * norm_weight is rounded to 16 bits before it is multiplied.
#include "device/mma.cuh"
#include "device/reduce.cuh"
#include "linear/few_tokens.cuh"

namespace hone::linear::mma {

inline constexpr int rows = Tuned::rows;
inline constexpr int row_blocks = rows / 16;
inline constexpr int token_blocks = (block_tokens + 7) / 8;
/// Warps of a group take turns at 64 columns: one line of 128 bytes a row.
inline constexpr int lines = (in + 63) / 64;
inline constexpr int batches = (2 * ((lines + k_warps - 1) / k_warps) + unroll - 1) / unroll;
static_assert(rows % 16 == 0, "16 rows an instruction");
static_assert(out >= rows, "a warp's rows exist");

struct Held {
    uint4 words[unroll][products][row_blocks][2];
};

/// Eight elements of a token, times the norm's weight.
__device__ inline uint4 folded(const uint4& x, const float (&norm_weight)[vector], float& squares) {
    float values[vector];
    unpack_word(x, values);
    fold_norm(values, norm_weight, squares);
    const Packet<Element, vector> packet = pack<Element>(values);
    uint4 word;
    memcpy(&word, &packet, 16);
    return word;
}

__device__ inline void run(const Tensors& tensors) {
    __shared__ Partials<rows> partials;
    if constexpr (Tuned::programmatic != 0) release_successor();
    const FewTokens call(tensors);
    const int lane = threadIdx.x % 32;
    const int g = lane / 4;
    const int t = lane % 4;
    const int k_warp = threadIdx.x / 32 % k_warps;
    const int group = threadIdx.x / 32 / k_warps;
    const auto column_of = [&](int batch, int u) {
        const int step = batch * unroll + u;
        return (step / 2 * k_warps + k_warp) * 64 + step % 2 * 32 + t * 8;
    };
    const auto load = [&](const Rows<rows>& place, int batch, Held& held) {
#pragma unroll
        for (int u = 0; u < unroll; ++u) {
            const int column = readable(column_of(batch, u));
#pragma unroll
            for (int product = 0; product < products; ++product) {
#pragma unroll
                for (int half = 0; half < 2 * row_blocks; ++half)
                    held.words[u][product][half / 2][half % 2] =
                        call.load_weight<4>(product, place.first + g + 8 * half, column);
            }
        }
    };
    MmaSums sums[products][row_blocks][token_blocks] = {};
    float squares[token_blocks] = {};
    const auto multiply = [&](int batch, const Held& held) {
#pragma unroll
        for (int u = 0; u < unroll; ++u) {
            uint4 x[token_blocks];
#pragma unroll
            for (int n = 0; n < token_blocks; ++n) {
                const int token = n * 8 + g;
                x[n] = token < block_tokens ? call.load_x<4>(token, column_of(batch, u)) : uint4{0, 0, 0, 0};
            }
            if constexpr (folds_norm) {
                float norm_weight[vector];
                call.load_norm_weight<4>(column_of(batch, u), norm_weight);
#pragma unroll
                for (int n = 0; n < token_blocks; ++n) x[n] = folded(x[n], norm_weight, squares[n]);
            }
#pragma unroll
            for (int product = 0; product < products; ++product) {
#pragma unroll
                for (int block = 0; block < row_blocks; ++block) {
                    const uint4& low = held.words[u][product][block][0];
                    const uint4& high = held.words[u][product][block][1];
#pragma unroll
                    for (int n = 0; n < token_blocks; ++n)
                        multiply_16<Element>(sums[product][block][n], low.x, high.x, low.y, high.y, x[n].x,
                                             x[n].y);
#pragma unroll
                    for (int n = 0; n < token_blocks; ++n)
                        multiply_16<Element>(sums[product][block][n], low.z, high.z, low.w, high.w, x[n].z,
                                             x[n].w);
                }
            }
        }
    };
    const auto finish = [&](const Rows<rows>& place, int buffer) {
#pragma unroll
        for (int product = 0; product < products; ++product) {
#pragma unroll
            for (int block = 0; block < row_blocks; ++block) {
#pragma unroll
                for (int n = 0; n < token_blocks; ++n) {
#pragma unroll
                    for (int i = 0; i < 4; ++i) {
                        const int row = block * 16 + g + i / 2 * 8;
                        const int token = n * 8 + 2 * t + i % 2;
                        float& sum = sums[product][block][n].values[i];
                        if (token < block_tokens)
                            partials.sums[buffer][group][k_warp][product][token][row] = sum;
                        sum = 0.0f;
                    }
                }
            }
        }
        if constexpr (folds_norm) {
#pragma unroll
            for (int n = 0; n < token_blocks; ++n) {
                const float sum = reduce_lanes<Sum, 4>(squares[n]);
                squares[n] = 0.0f;
                const int token = n * 8 + g;
                if (t == 0 && token < block_tokens) partials.squares(buffer, group, k_warp, token) = sum;
            }
        }
        add_and_store(partials, call, buffer, group, k_warp, place);
    };
    stream<rows, batches, Held>(
        call, group, load, [] {}, multiply, finish);
}

}  // namespace hone::linear::mma

extern "C" __global__ void __launch_bounds__(hone::linear::threads, Tuned::blocks_per_sm)
    linear_mma(HONE_PARAMETERS(linear_mma)) {
    const hone::linear::Tensors tensors{HONE_ARGUMENTS(linear_mma)};
    hone::linear::mma::run(tensors);
}

namespace hone::linear::normalize {
inline constexpr int vector = linear::access();
}

#include "linear/normalize.cuh"
