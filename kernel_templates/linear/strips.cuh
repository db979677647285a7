// Variant strips, for 2 to 8 tokens: few_tokens.cuh says how. A warp reads `rows` rows of the weight
// in strips of 128 to 512 bytes and multiplies with mma.m16n8k16, weights as the right operand.
//
// Few tokens leave rows of the left operand free. They take the same tokens again, at other columns: row a
// has token a % block_tokens and part a / block_tokens of the strip, which has 16 / block_tokens parts of 32
// columns. A column n of the right operand has part n % parts of the weight's row n / parts, so neighbouring
// lanes read one row. What a part gives with another part of x is not looked at; the products of equal parts
// are added up when a step ends.
//
// Fragments without shared memory, as in mma.cu: lane l = 4 g + t reads 8 neighbouring columns (16 bytes),
// the first 4 of which serve one instruction and the last 4 the next.
#pragma once

#include "device/mma.cuh"
#include "device/reduce.cuh"
#include "linear/few_tokens.cuh"

namespace hone::linear::strips {

inline constexpr int rows = Tuned::rows;
inline constexpr int part = 32;
inline constexpr int parts = 16 / block_tokens;
inline constexpr int strip = part * parts;
/// Rows of the weight that an instruction has.
inline constexpr int mma_rows = 8 / parts;
inline constexpr int row_blocks = rows / mma_rows;
inline constexpr int count = (in + strip - 1) / strip;
inline constexpr int batches = (count + k_warps * unroll - 1) / (k_warps * unroll);
static_assert(access() == vector, "rows start at multiples of 16 bytes");
static_assert(block_tokens == 2 || block_tokens == 4 || block_tokens == 8, "a part for each 2 to 8 tokens");
static_assert(rows % mma_rows == 0 && out >= rows, "a warp's rows exist, and fill instructions");

struct Held {
    uint4 words[unroll][products][row_blocks];
};

/// A token's and a row's sum of the products of equal parts. Lanes that differ in nothing but parts all get
/// it.
__device__ inline float sum_of_parts(const MmaSums& sums, int g, int t) {
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int x_part = (g + i / 2 * 8) / block_tokens;
        const int weight_part = (2 * t + i % 2) % parts;
        if (x_part == weight_part) sum += sums.values[i];
    }
#pragma unroll
    for (int token_bit = block_tokens; token_bit < 8; token_bit *= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, 4 * token_bit);
#pragma unroll
    for (int part_bit = 2; part_bit < parts; part_bit *= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, part_bit / 2);
    return sum;
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
    // A warp's strips are neighbours.
    const auto column_of = [&](int batch, int u) {
        return ((batch * k_warps + k_warp) * unroll + u) * strip + t * 8;
    };
    const auto load = [&](const Rows<rows>& place, int batch, Held& held) {
#pragma unroll
        for (int u = 0; u < unroll; ++u) {
            const int column = readable(column_of(batch, u) + g % parts * part);
#pragma unroll
            for (int product = 0; product < products; ++product) {
#pragma unroll
                for (int block = 0; block < row_blocks; ++block)
                    held.words[u][product][block] = load_weight(
                        call.weight_at(product, place.first + block * mma_rows + g / parts, column));
            }
        }
    };
    MmaSums sums[products][row_blocks] = {};
    const auto multiply = [&](int batch, const Held& held) {
#pragma unroll
        for (int u = 0; u < unroll; ++u) {
            const auto load_x = [&](int row) {
                return call.load_x<4>(row % block_tokens, column_of(batch, u) + row / block_tokens * part);
            };
            const uint4 low = load_x(g);
            const uint4 high = load_x(g + 8);
#pragma unroll
            for (int product = 0; product < products; ++product) {
#pragma unroll
                for (int block = 0; block < row_blocks; ++block) {
                    const uint4& weight = held.words[u][product][block];
                    MmaSums& to = sums[product][block];
                    multiply_16<Element>(to, low.x, high.x, low.y, high.y, weight.x, weight.y);
                    multiply_16<Element>(to, low.z, high.z, low.w, high.w, weight.z, weight.w);
                }
            }
        }
    };
    LaneSquares squares;
    const auto finish = [&](const Rows<rows>& place, int buffer) {
        const int token = g % block_tokens;
        const bool is_first = g < block_tokens && 2 * t % parts == 0;
#pragma unroll
        for (int product = 0; product < products; ++product) {
#pragma unroll
            for (int block = 0; block < row_blocks; ++block) {
                const float sum = sum_of_parts(sums[product][block], g, t);
                const int row = block * mma_rows + 2 * t / parts;
                if (is_first) partials.sums[buffer][group][k_warp][product][token][row] = sum;
                sums[product][block] = {};
            }
        }
        if constexpr (takes_factors()) squares.leave(partials, buffer, group, k_warp);
        add_and_store(partials, call, buffer, group, k_warp, place);
    };
    const auto begin = [&] { squares.load(call, k_warp); };
    stream<rows, batches, Held>(call, group, load, begin, multiply, finish);
}

}  // namespace hone::linear::strips
