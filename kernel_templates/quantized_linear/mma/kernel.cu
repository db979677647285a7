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
#include "quantized_linear/mma/product.cuh"

namespace hone::quantized_linear::mma_blocks {

/// Adds the warps' sums of 8 tokens and writes the results.
__device__ inline void join(const Tensors& tensors, const float* partials, int64 first_token, int first_row) {
#pragma unroll 1
    for (int i = threadIdx.x; i < geometry.block_rows() * joined_tokens; i += geometry.threads()) {
        const int row = i % geometry.block_rows();
        const int64 token = first_token + i / geometry.block_rows();
        if (first_row + row >= out || token >= tensors.tokens) continue;
        const float x_scale =
            is_packed || has_blocks ? 1.0f : tensors.x_scales[token * tensors.x_scale_stride];
        float sums[products];
        join_warps(partials, i / geometry.block_rows(), row, sums);
#pragma unroll
        for (int product = 0; product < products; ++product)
            sums[product] *= x_scale * row_factor(tensors.weight_of(product), first_row + row);
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
    const TokenRows rows{first_token, tensors.tokens};
    const X<TokenRows> x(tensors, rows, shared_address(shared));

    Held held;
    load(tensors, warp, 0, held);
    if constexpr (Tuned::programmatic != 0) wait_for_predecessor();
    x.copy(0);
    Sums sums = {};
    multiply_all(tensors, x, warp, held, sums);
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
