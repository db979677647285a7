// Linear layers of experts, variant mma_tiles (sm_80): warp tensor cores fed from tiles in shared memory, for
// many rows an expert where there is no wgmma. How tiles are multiplied, and the way of data, is linear's
// (linear/mma_tiles/product.cuh); the feeder beside this says which rows come, and here is where results go.
//
// Barriers: one a stage, in the feeder's turn(), and one between the last multiplication and the staging of
// results in the ring's place, which a warp then reads back for itself. Blocks that find no tile leave before
// all of them.
#include "expert_linear/mma_tiles/feeder.cuh"

namespace hone::expert_linear::mma_tiles {

/// A warp's results on their way out: rounded, through shared memory, 16 bytes a lane.
class Writer {
  public:
    __device__ Writer(uint32 staging, const Tensors& tensors, const Tile& tile, int warp_m, int warp_n)
        : shared_(staging + warp_index() * rows * results * 2),
          tensors_(tensors),
          tile_(tile),
          first_place_(tile.first + warp_m * rows),
          first_column_(tile.column * tiles::result_columns + warp_n * results) {}

    __device__ void store(const tiles::Sums& sums) const {
#pragma unroll
        for (int b = 0; b < tiles::row_blocks; ++b) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
#pragma unroll
                for (int j = 0; j < result_blocks; ++j) {
                    const int row = 16 * b + 8 * half + lane_index() / 4;
                    store_shared(shared_ + swizzled_offset<results>(row, j) + lane_index() % 4 * 4,
                                 packed(sums, b, half, j));
                }
            }
        }
        __syncwarp();
        copy_out();
    }

  private:
    static constexpr int rows = geometry.warp_rows();
    static constexpr int results = geometry.warp_results();
    static constexpr int result_blocks = results / 8;

    __device__ uint32 packed(const tiles::Sums& sums, int b, int half, int j) const {
        float pair[2];
#pragma unroll
        for (int e = 0; e < 2; ++e) {
            float both[products];
#pragma unroll
            for (int product = 0; product < products; ++product)
                both[product] = sums[b][product * result_blocks + j].values[2 * half + e];
            const int column = min(first_column_ + 8 * j + lane_index() % 4 * 2 + e, columns - 1);
            pair[e] = tensors_.finish(tile_.expert, column, both);
        }
        return pack_pair(Element{}, pair[0], pair[1]);
    }
    __device__ void copy_out() const {
        constexpr int chunks = results / 8;
        const int chunk = lane_index() % chunks;
        const int column = first_column_ + chunk * 8;
        if (column >= columns) return;
#pragma unroll
        for (int first = 0; first < rows; first += 32 / chunks) {
            const int row = first + lane_index() / chunks;
            if (first_place_ + row >= tile_.end) continue;
            Element* const to = tensors_.result_at(first_place_ + row);
            if (to == nullptr) continue;
            store_word<StoreHint::normal, 16>(to + column,
                                              load_shared_16(shared_ + swizzled_offset<results>(row, chunk)));
        }
    }

    uint32 shared_;
    const Tensors& tensors_;
    const Tile& tile_;
    int first_place_;
    int first_column_;
};

__device__ inline void run(const Tensors& tensors) {
    extern __shared__ __align__(tiles::Geometry::alignment) uint8 memory[];
    const uint32 ring = shared_address(memory);
    if constexpr (tiles::programmatic) {
        release_successor();
        wait_for_predecessor();
    }
    Tile tile;
    if (!Tiles(tensors).find(blockIdx.x, tile)) return;
    const int warp_m = warp_index() % geometry.warps_m;
    const int warp_n = warp_index() / geometry.warps_m;
    tiles::Sums sums = {};
    Feeder feeder(ring, tensors, tile);
    tiles::multiply_tile(feeder, tiles::Reader(ring, warp_m, warp_n), tiles::k_tiles, sums);
    __syncthreads();
    Writer(ring, tensors, tile, warp_m, warp_n).store(sums);
}

}  // namespace hone::expert_linear::mma_tiles

extern "C" __global__ void __launch_bounds__(hone::linear::tiles::threads, Tuned::blocks_per_sm)
    expert_linear_mma_tiles(HONE_PARAMETERS(expert_linear_mma_tiles)) {
    const hone::expert_linear::Tensors tensors{HONE_ARGUMENTS(expert_linear_mma_tiles)};
    hone::expert_linear::mma_tiles::run(tensors);
}

namespace hone::expert_linear::combine {
inline constexpr int vector = 8;
}

#include "expert_linear/combine.cuh"
