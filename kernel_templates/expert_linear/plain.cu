// Linear layers of experts, variant plain: any size, any type, any chip; CUDA cores alone. What a block does
// with its tile is linear's (linear/plain_product.cuh, with its barriers); here is which rows and which
// weight the tile is of.
#include "device/sync.cuh"
#include "expert_linear/expert_tiles.cuh"
#include "linear/plain_product.cuh"

namespace hone::expert_linear::plain {

namespace product = linear::plain_product;
inline constexpr int across = (columns + product::tile_out - 1) / product::tile_out;
using Tiles = ExpertTiles<product::tile_tokens, across>;

/// Rows of x that may stand anywhere, on their way to shared memory; a tile's missing rows repeat its last.
struct StagedX : product::StagedRows<Element, product::tile_tokens> {
    const Element* from[rounds];

    __device__ StagedX(const Tensors& tensors, const Tile& tile) {
#pragma unroll
        for (int i = 0; i < rounds; ++i) {
            const int row = (static_cast<int>(threadIdx.x) + i * product::threads) / packets_a_row;
            from[i] = tensors.x_at(min(tile.first + row, tile.end - 1));
            scales[i] = 1.0f;
        }
    }
    __device__ void load(int step) {
#pragma unroll
        for (int i = 0; i < rounds; ++i) {
            const int index = static_cast<int>(threadIdx.x) + i * product::threads;
            const int column = step * product::tile_in + index % packets_a_row * product::vector;
            packets[i] = load_packet<Element, product::vector>(from[i] + (column < in ? column : 0));
            if (column >= in) packets[i] = {};
        }
    }
};

struct StagedWeight : product::StagedRows<Element, product::tile_out> {
    __device__ void load(const Element* weight, int first_row, int step) {
        StagedRows::load(weight, in, first_row, columns, step, [](int64, int) { return 1.0f; });
    }
};

__device__ inline void store(const Tensors& tensors, const Tile& tile, int token_lane, int out_lane,
                             const product::Sums& sums) {
#pragma unroll
    for (int i = 0; i < product::thread_tokens; ++i) {
        const int place = tile.first + product::TokenNumbers::place(token_lane, i);
        Element* const to = place < tile.end ? tensors.result_at(place) : nullptr;
        if (to == nullptr) continue;
#pragma unroll
        for (int j = 0; j < product::thread_out; ++j) {
            const int column = tile.column * product::tile_out + product::OutNumbers::place(out_lane, j);
            if (column >= columns) continue;
            float both[products];
#pragma unroll
            for (int k = 0; k < products; ++k) both[k] = sums.values[k][i][j];
            to[column] = from_float<Element>(tensors.finish(tile.expert, column, both));
        }
    }
}

__device__ inline void run(const Tensors& tensors) {
    __shared__ product::Buffers buffers[2];
    if constexpr (product::programmatic) {
        release_successor();
        wait_for_predecessor();
    }
    Tile tile;
    if (!Tiles(tensors).find(blockIdx.x, tile)) return;
    const int token_lane = static_cast<int>(threadIdx.x) / product::threads_across;
    const int out_lane = static_cast<int>(threadIdx.x) % product::threads_across;

    StagedX x(tensors, tile);
    StagedWeight weight[products];
    const auto load = [&](int step) {
        x.load(step);
#pragma unroll
        for (int k = 0; k < products; ++k)
            weight[k].load(tensors.weight_of(k, tile.expert), tile.column * product::tile_out, step);
    };
    product::Sums sums = {};
    load(0);
    for (int step = 0; step < product::steps; ++step) {
        product::Buffers& buffer = buffers[step % 2];
        x.store(buffer.x, step);
#pragma unroll
        for (int k = 0; k < products; ++k) weight[k].store(buffer.weight[k], step);
        __syncthreads();
        if (step + 1 < product::steps) load(step + 1);
        product::multiply(buffer, token_lane, out_lane, sums);
    }
    store(tensors, tile, token_lane, out_lane, sums);
}

}  // namespace hone::expert_linear::plain

extern "C" __global__ void __launch_bounds__(hone::linear::plain_product::threads)
    expert_linear_plain(HONE_PARAMETERS(expert_linear_plain)) {
    const hone::expert_linear::Tensors tensors{HONE_ARGUMENTS(expert_linear_plain)};
    hone::expert_linear::plain::run(tensors);
}

namespace hone::expert_linear::combine {
inline constexpr int vector =
    columns % linear::plain_product::vector == 0 ? linear::plain_product::vector : 1;
}

#include "expert_linear/combine.cuh"
