// Variant plain of products of experts, whatever weights are: which rows and columns a block's tile has, its
// rows of x, and where its results go. How a tile is multiplied is linear's (linear/plain_product.cuh, with
// its barriers).
#pragma once

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

/// The whole kernel. `make_x(tile)` is a thread's part of one step's x between load(step) and store(tile,
/// step); `load_weight(staged, product, tile, step)` fills a `StagedWeight`, which has store(), too.
template <class StagedWeight, class MakeX, class LoadWeight>
__device__ inline void run(const Tensors& tensors, MakeX make_x, LoadWeight load_weight) {
    __shared__ product::Buffers buffers[2];
    if constexpr (product::programmatic) {
        release_successor();
        wait_for_predecessor();
    }
    Tile tile;
    if (!Tiles(tensors).find(blockIdx.x, tile)) return;
    const int token_lane = static_cast<int>(threadIdx.x) / product::threads_across;
    const int out_lane = static_cast<int>(threadIdx.x) % product::threads_across;

    auto x = make_x(tile);
    StagedWeight weight[products];
    const auto load = [&](int step) {
        x.load(step);
#pragma unroll
        for (int k = 0; k < products; ++k) load_weight(weight[k], k, tile, step);
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
