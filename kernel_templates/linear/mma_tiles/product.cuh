// Linear by warp tensor cores and shared memory, for many tokens where there is no wgmma. START HERE;
// geometry (sizes), tile (tunables, schedule), feeder (ring) and writer (results) hold a part each.
//
// A block computes one tile: tile_m tokens x tile_n rows of the weight, for a part of the sum (`split`; a
// second launch adds the parts). Its warps_m x warps_n warps each multiply a tile of their own and all copy.
//
// Data's way: global memory -> ring of stages in shared memory, tile_k columns each, x above the weight,
// chunks of 16 bytes swizzled -> fragments in registers (ldmatrix, free of bank conflicts), where registers
// allow one step of 16 columns ahead of the multiplication, also from one stage to the next -> mma.sync ->
// sums in registers -> shared memory, in the ring's place -> global, 16 bytes a lane. A gated tile has gate
// rows, then up rows, and each warp takes the same of both: the two products of an element meet in one
// thread.
//
// Barriers: one a stage, in turn() (feeder.cuh), and one between the last multiplication and the
// staging of results: reading ahead, the last step also reads fragments of a stage that is none.
#pragma once

#include "device/mma.cuh"
#include "linear/mma_tiles/feeder.cuh"
#include "linear/mma_tiles/writer.cuh"

namespace hone::linear::tiles {

/// Words of 16 columns of a warp's rows of x and of the weight.
struct Fragments {
    uint32 x[row_blocks][4];
    uint32 weight[column_blocks / 2][4];
};

/// Where a lane reads: the addresses that it names for the first 16 columns of the first blocks of a stage.
class Reader {
  public:
    __device__ Reader(uint32 ring, int warp_m, int warp_n) {
        const int lane = threadIdx.x % 32;
        x_ = ring + swizzled_offset<tile_k>(warp_m * geometry.warp_rows() + lane % 16, lane / 16);
        weight_ = ring + geometry.weight_at() +
                  swizzled_offset<tile_k>(warp_n * geometry.warp_results() + lane % 8 + lane / 16 * 8,
                                          lane / 8 % 2);
    }
    __device__ void load(Fragments& to, uint32 slot, int step) const {
        constexpr int bytes = 16 * geometry.row_bytes();
        constexpr int pairs = column_blocks / 2 / products;
        constexpr int up_bytes = result_columns * geometry.row_bytes();
        const uint32 x = (x_ + slot) ^ (step * 32);
        const uint32 weight = (weight_ + slot) ^ (step * 32);
#pragma unroll
        for (int b = 0; b < row_blocks; ++b) load_matrices(to.x[b], x + b * bytes);
#pragma unroll
        for (int p = 0; p < products * pairs; ++p)
            load_matrices(to.weight[p], weight + p / pairs * up_bytes + p % pairs * bytes);
    }

  private:
    uint32 x_;
    uint32 weight_;
};

__device__ inline void multiply(const Fragments& fragments, Sums& sums) {
#pragma unroll
    for (int b = 0; b < row_blocks; ++b) {
        const uint32(&x)[4] = fragments.x[b];
#pragma unroll
        for (int i = 0; i < column_blocks; ++i) {
            const int j = b % 2 == 0 ? i : column_blocks - 1 - i;
            const uint32* weight = fragments.weight[j / 2] + j % 2 * 2;
            multiply_16<Element>(sums[b][j], x[0], x[1], x[2], x[3], weight[0], weight[1]);
        }
    }
}

template <class Feeder>
__device__ inline void multiply_tile(Feeder& feeder, const Reader& reader, int k_count, Sums& sums) {
    constexpr int ahead = geometry.reads_ahead() ? 1 : 0;
    Fragments held[1 + ahead];
    uint32 slot = 0;
    feeder.start();
    if constexpr (ahead == 1) reader.load(held[0], slot, 0);
#pragma unroll 1
    for (int k = 0; k < k_count; ++k) {
#pragma unroll
        for (int step = 0; step < steps; ++step) {
            feeder.feed(step);
            if constexpr (ahead == 0) reader.load(held[0], slot, step);
            if (step == steps - 1) {
                feeder.turn();
                slot = next_slot(slot);
            }
            if constexpr (ahead == 1) reader.load(held[(step + 1) % 2], slot, (step + 1) % steps);
            multiply(held[step % (1 + ahead)], sums);
        }
    }
}

__device__ inline void run(const Tensors& tensors) {
    extern __shared__ __align__(Geometry::alignment) uint8 memory[];
    const uint32 ring = shared_address(memory);
    const int warp = threadIdx.x / 32;
    const int warp_m = warp % geometry.warps_m;
    const int warp_n = warp / geometry.warps_m;
    const Tile tile = tile_of_block(static_cast<int>(tensors.tokens));
    if constexpr (programmatic) release_successor();

    Sums sums = {};
    const Reader reader(ring, warp_m, warp_n);
#if __CUDA_ARCH__ >= 800
    using Feeder = Conditional<geometry.asynchronous(), AsyncFeeder, RegisterFeeder>::type;
#else
    using Feeder = RegisterFeeder;
#endif
    Feeder feeder(ring, tensors, tile);
    multiply_tile(feeder, reader, tile.k_count, sums);

    const Results results = results_of(tensors);
    Writer writer(ring, results, tile.token + warp_m * geometry.warp_rows(),
                  tile.column + warp_n * geometry.warp_results());
    if constexpr (split > 1) {
        writer.store_partials(sums, tile.part);
    } else {
        __syncthreads();
        writer.store(sums);
    }
}

}  // namespace hone::linear::tiles
