// How a warpgroup of variant wgmma (kernel.cu) brings its sums to memory: rounded, through shared memory
// (stmatrix), and from there 16 bytes a thread to whichever rows the tile's results belong; rows that are
// none of the tile's, and columns beyond the expert's, are not written.
//
// Barriers, of the warpgroup alone: one before the staging memory is written again, one before it is read.
#pragma once

#include "device/shared_tile.cuh"
#include "device/warpgroup.cuh"
#include "expert_linear/wgmma/tile.cuh"

namespace hone::expert_linear::wgmma {

class Writer {
  public:
    __device__ Writer(uint32 shared, const Tensors& tensors, int warpgroup)
        : staging_(shared + geometry.staging_at() + warpgroup * geometry.staging_bytes()),
          tensors_(tensors),
          warpgroup_(warpgroup),
          warp_(warp_index() % 4),
          lane_(lane_index()) {}

    __device__ void store(const gemm::Sums& sums, const Tile& tile) const {
#pragma unroll
        for (int batch = 0; batch < geometry.panels(); batch += geometry.store_panels()) {
            const int end = min(batch + geometry.store_panels(), geometry.panels());
            named_barrier_sync<128>(1 + warpgroup_);
#pragma unroll
            for (int panel = batch; panel < end; ++panel) stage(sums, tile, panel, staging(panel - batch));
            named_barrier_sync<128>(1 + warpgroup_);
            for (int panel = batch; panel < end; ++panel) copy_out(tile, panel, staging(panel - batch));
        }
    }

  private:
    static constexpr int width = geometry.panel_width();
    static constexpr int panel_rows = swapped ? gemm::tile_n : gemm::block_rows;
    static constexpr int column_blocks = geometry.result_columns() / 8;

    __device__ uint32 staging(int panel) const { return staging_ + panel * geometry.panel_bytes(); }
    /// First row of results of block b of the left operand, in the tile.
    __device__ int block_row(int b) const {
        return (warpgroup_ * gemm::result_blocks + b) * gemm::block_rows;
    }

    /// Sum of a product: (b, j, half, e) in the accumulators' map.
    __device__ static float sum_of(const gemm::Sums& sums, int product, int b, int j, int half, int e) {
        const int block = b + (product == 1 && gemm::gated_rows ? gemm::result_blocks : 0);
        const int first = product == 1 && gemm::gated_columns ? gemm::tile_n / 4 : 0;
        return sums[block][first + 4 * j + 2 * half + e];
    }
    /// Column of the expert's results; one that exists where it does not.
    __device__ int column_of(const Tile& tile, int b, int j, int half, int e) const {
        const int in_tile =
            swapped ? block_row(b) + 16 * warp_ + lane_ / 4 + 8 * half : 8 * j + lane_ % 4 * 2 + e;
        return min(wgmma::first_column(tile) + in_tile, columns - 1);
    }
    __device__ uint32 packed(const gemm::Sums& sums, const Tile& tile, int b, int j, int half) const {
        float results[2];
#pragma unroll
        for (int e = 0; e < 2; ++e) {
            float both[products];
#pragma unroll
            for (int product = 0; product < products; ++product)
                both[product] = sum_of(sums, product, b, j, half, e);
            results[e] = tensors_.finish(tile.expert, column_of(tile, b, j, half, e), both);
        }
        return pack_pair(Element{}, results[0], results[1]);
    }

    __device__ void stage(const gemm::Sums& sums, const Tile& tile, int panel, uint32 to) const {
        if constexpr (swapped) {
            stage_transposed(sums, tile, panel, to);
        } else {
            stage_straight(sums, tile, panel, to);
        }
    }
    /// 64 rows x `width` columns: a warp writes 16 rows, 16 columns at a time.
    __device__ void stage_straight(const gemm::Sums& sums, const Tile& tile, int panel, uint32 to) const {
        const int b = panel / geometry.panels_across();
        const int row = 16 * warp_ + lane_ % 16;
#pragma unroll
        for (int chunk = 0; chunk < width / 8; chunk += 2) {
            const int j = panel % geometry.panels_across() * (width / 8) + chunk;
            store_matrices(to + swizzled_offset<width>(row, chunk + lane_ / 16), packed(sums, tile, b, j, 0),
                           packed(sums, tile, b, j, 1), packed(sums, tile, b, j + 1, 0),
                           packed(sums, tile, b, j + 1, 1));
        }
    }
    /// tile_n rows of x x 64 results: a warp writes 16 results of every row.
    __device__ void stage_transposed(const gemm::Sums& sums, const Tile& tile, int b, uint32 to) const {
        const int chunk = 2 * warp_ + lane_ / 8 % 2;
#pragma unroll
        for (int j = 0; j < column_blocks; j += 2) {
            const bool two = j + 1 < column_blocks;
            const int row = 8 * j + lane_ % 8 + (two ? lane_ / 16 * 8 : 0);
            const uint32 address = to + swizzled_offset<64>(row, chunk);
            const uint32 upper = packed(sums, tile, b, j, 0);
            const uint32 lower = packed(sums, tile, b, j, 1);
            if (two) {
                store_matrices_transposed(address, upper, lower, packed(sums, tile, b, j + 1, 0),
                                          packed(sums, tile, b, j + 1, 1));
            } else {
                store_matrices_transposed(address, upper, lower);
            }
        }
    }

    __device__ void copy_out(const Tile& tile, int panel, uint32 from) const {
        constexpr int chunks = width / 8;
        const int b = panel / geometry.panels_across();
        const int first_place = wgmma::first_row(tile, tensors_.places()) + (swapped ? 0 : block_row(b));
        const int first_column =
            wgmma::first_column(tile) + (swapped ? block_row(b) : panel % geometry.panels_across() * width);
        for (int i = static_cast<int>(threadIdx.x) % 128; i < panel_rows * chunks; i += 128) {
            const int place = first_place + i / chunks;
            const int column = first_column + i % chunks * 8;
            if (place < tile.first || place >= tile.end) continue;
            if (column < tile.column * tile_columns || column >= columns) continue;
            Element* const to = tensors_.result_at(place);
            if (to == nullptr) continue;
            store_word<StoreHint::normal, 16>(
                to + column, load_shared_16(from + swizzled_offset<width>(i / chunks, i % chunks)));
        }
    }

    uint32 staging_;
    const Tensors& tensors_;
    int warpgroup_;
    int warp_;
    int lane_;
};

}  // namespace hone::expert_linear::wgmma
