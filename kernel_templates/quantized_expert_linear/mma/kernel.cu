// Linear layers of experts with quantized weights, variant mma: few rows an expert to some hundreds,
// warp-level tensor cores (sm_75, fp16 and int8 alone there). A block computes up to `tokens` rows of one
// expert x `rows` * row_warps results. What warps hold and how they multiply is quantized_linear's
// (quantized_linear/mma/kernel.cu says how, with its barriers); here is which rows come, and where results
// go.
//
// Rows of x that are gathered have their numbers in shared memory, behind a barrier that all threads of
// blocks which found a tile pass; blocks without a tile leave before it. Nothing is read before the kernel
// before has ended, since starts say which weights are needed.
#include "quantized_expert_linear/tensors.cuh"

#include "expert_linear/expert_tiles.cuh"
#include "quantized_linear/mma/product.cuh"

namespace hone::quantized_expert_linear::mma {

using namespace quantized_linear::mma_blocks;
inline constexpr int tile_rows = geometry.tokens;
inline constexpr int across = (columns + geometry.block_rows() - 1) / geometry.block_rows();
using expert_linear::Tile;
using Tiles = expert_linear::ExpertTiles<tile_rows, across>;
inline constexpr bool by_token = expert_linear::gathers && is_packed;

/// As quantized_linear's TokenRows; a tile's missing rows repeat its last.
struct Rows {
    const int* numbers;  ///< in shared memory, where rows stand by token
    int first;
    int end;

    __device__ int64 place(int row) const { return by_token ? numbers[row] : min(first + row, end - 1); }
};

/// Writes 8 rows' results from the warps' sums.
__device__ inline void join(const Tensors& tensors, const quantized_linear::Tensors& of, const Tile& tile,
                            const float* partials, int first_place) {
    const int first_column = tile.column * geometry.block_rows();
#pragma unroll 1
    for (int i = threadIdx.x; i < geometry.block_rows() * joined_tokens; i += geometry.threads()) {
        const int row = i % geometry.block_rows();
        const int column = first_column + row;
        const int place = first_place + i / geometry.block_rows();
        if (column >= columns || place >= tile.end) continue;
        Element* const to = tensors.result_at(place);
        if (to == nullptr) continue;
        const float x_scale = is_packed || has_blocks ? 1.0f : of.x_scales[place * of.x_scale_stride];
        float sums[products];
        join_warps(partials, i / geometry.block_rows(), row, sums);
#pragma unroll
        for (int product = 0; product < products; ++product)
            sums[product] *= x_scale * row_factor(of.weight_of(product), column);
        to[column] = from_float<Element>(tensors.finish(tile.expert, column, sums));
    }
}

__device__ inline void run(const Tensors& tensors, float* shared) {
    __shared__ int numbers[tile_rows];
    if constexpr (Tuned::programmatic != 0) {
        release_successor();
        wait_for_predecessor();
    }
    Tile tile;
    if (!Tiles(tensors).find(blockIdx.x, tile)) return;
    const quantized_linear::Tensors of = of_expert(tensors, tile.expert);
    const Warp warp(tile.column);
    Held held;
    load(of, warp, 0, held);
    if constexpr (by_token) {
        for (int row = threadIdx.x; row < tile_rows; row += geometry.threads())
            numbers[row] = tensors.x_row(min(tile.first + row, tile.end - 1));
        __syncthreads();
    }
    const Rows rows{numbers, tile.first, tile.end};
    const X<Rows> x(of, rows, shared_address(shared));
    x.copy(0);
    Sums sums = {};
    multiply_all(of, x, warp, held, sums);
#pragma unroll
    for (int n = 0; n < token_blocks; ++n) {
        float* const partials = shared + n % 2 * geometry.partial_floats();
        put(partials, warp, sums, n);
        __syncthreads();
        join(tensors, of, tile, partials, tile.first + n * joined_tokens);
    }
}

}  // namespace hone::quantized_expert_linear::mma

extern "C" __global__ void __launch_bounds__(hone::quantized_linear::mma_blocks::geometry.threads())
    quantized_expert_linear_mma(HONE_PARAMETERS(quantized_expert_linear_mma)) {
    const hone::expert_linear::Tensors tensors{HONE_ARGUMENTS(quantized_expert_linear_mma)};
    extern __shared__ __align__(128) float shared[];
    hone::quantized_expert_linear::mma::run(tensors, shared);
}

namespace hone::expert_linear::combine {
inline constexpr int vector = columns % 8 == 0 ? 8 : 1;
}
namespace hone::quantized_expert_linear::codes {
inline constexpr int vector = 8;
}

#include "expert_linear/combine.cuh"
#include "quantized_expert_linear/codes.cuh"
