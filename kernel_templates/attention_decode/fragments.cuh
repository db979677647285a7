// What the variants registers and ring share: sums as mma.sync leaves them, and their way to shared memory.
#pragma once

#include "attention_decode/join.cuh"
#include "attention_decode/softmax.cuh"

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

}  // namespace hone::attention_decode
