// What the variants registers and ring share: sums as mma.sync leaves them, and their way to shared memory.
#pragma once

#include "attention_decode/join.cuh"
#include "attention_decode/softmax.cuh"
#include "device/warp.cuh"

namespace hone::attention_decode {

/// O^T of a warp: blocks of 16 columns (which, the variant knows), rows 8 n + 2 t + e: values 0 and 1 are row
/// g of the instruction, 2 and 3 row g + 8.
template <int column_blocks>
struct Sums {
    MmaSums blocks[row_blocks][column_blocks];

    __device__ void clear() {
#pragma unroll
        for (int n = 0; n < row_blocks; ++n) {
#pragma unroll
            for (int i = 0; i < column_blocks; ++i) blocks[n][i] = {};
        }
    }
    __device__ void shrink(const Softmax& softmax) {
#pragma unroll
        for (int n = 0; n < row_blocks; ++n) {
#pragma unroll
            for (int i = 0; i < 4 * column_blocks; ++i)
                blocks[n][i / 4].values[i % 4] *= softmax.factor[n][i % 2];
        }
    }
};

/// Leaves a warp's state in shared memory, and calls store(n, e, row of sums) for its rows.
template <class Store>
__device__ inline void leave_rows(Shared& shared, const Softmax& softmax, Store store) {
    const int warp = threadIdx.x / 32;
    const int g = threadIdx.x % 32 / 4;
    const int t = threadIdx.x % 4;
#pragma unroll
    for (int n = 0; n < row_blocks; ++n) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
            const int row = 8 * n + 2 * t + e;
            if (row >= block_rows) continue;
            if (g == 0) shared.states[warp][row] = {softmax.max[n][e], softmax.sum[n][e]};
            store(n, e, shared.sums[warp][row]);
        }
    }
}

/// Row of q that a lane holds as right operand g of block n, or nullptr where there is none.
__device__ inline const Element* query_row(const Tensors& tensors, const Fragment& fragment, int n) {
    const int row_in_block = n * 8 + static_cast<int>(threadIdx.x) % 32 / 4;
    const int row = first_row_of(fragment.list) + row_in_block;
    if (!fragment.present || row_in_block >= block_rows || row >= tensors.rows()) return nullptr;
    return tensors.q + tensors.query_offset(fragment.sequence, token_of(row), head_of(fragment.list, row));
}

/// The larger one of each half.
__device__ inline uint32 larger_halves(uint32 a, uint32 b) {
    return max(a >> 16, b >> 16) << 16 | max(a & 0xffffu, b & 0xffffu);
}

/// Makes fp16 of a warp's queries, where it multiplies codes and they are bf16, and returns what scores have
/// to be multiplied by: a power of two, which leaves the largest number below 2^15. A number of bf16 has 8
/// bits, so those are exact that are no more than 2^31 times smaller; what is smaller yet loses less than
/// 2^-38 of the largest. Where some number is not finite the power is 2^0, for the sake of other rows.
template <int blocks, int steps, int words>
__device__ inline float convert_queries(uint32 (&queries)[blocks][steps][words]) {
    if constexpr (!fp8_cache || !is_bf16<Element>) return 1.0f;
    constexpr uint32 bias = 127, top = bias + 14;
    constexpr int count = blocks * steps * words;
    const auto word = [&](int i) -> uint32& {
        return queries[i / words / steps][i / words % steps][i % words];
    };
    uint32 largest = 0;
#pragma unroll
    for (int i = 0; i < count; ++i) largest = larger_halves(largest, word(i) & 0x7fff7fffu);
    const uint32 exponent = warp_max(max(largest >> 16, largest & 0xffffu)) >> 7;
    const uint32 e = exponent == 255 ? top : max(exponent, 32u);
    const float factor = __uint_as_float((top + bias - e) << 23);
#pragma unroll
    for (int i = 0; i < count; ++i)
        word(i) = pack_pair(fp16{}, __uint_as_float(word(i) << 16) * factor,
                            __uint_as_float(word(i) & 0xffff0000u) * factor);
    return __uint_as_float((e - 14) << 23);
}

}  // namespace hone::attention_decode
