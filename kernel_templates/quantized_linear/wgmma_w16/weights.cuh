// The weights' part of a stage of variant wgmma_w16 (kernel.cu): where it stands, and the producer's
// copies of it. The tile's blocks of 64 rows stand one behind the other, and so does what belongs to each
// beside the codes.
#pragma once

#include "device/bulk.cuh"
#include "linear/wgmma/producer.cuh"
#include "quantized_linear/tensors.cuh"

namespace hone::quantized_linear::w16 {

namespace gemm = linear::gemm;

/// Blocks of 64 rows: of a tile, of the part of it that one weight gives, and of a whole weight.
inline constexpr int tile_blocks = gemm::tile_m / block_rows;
inline constexpr int weight_blocks = tile_blocks / products;
inline constexpr int all_blocks = static_cast<int>(whole_blocks(out));

inline constexpr Form form = form_of(static_cast<int>(Tuned::stages_together));
/// Stages whose codes of a block stand one behind the other, as they do in memory: one copy brings them, with
/// the first.
inline constexpr int code_stages = form.stage_steps();
/// Whether these have the same scales: they, too, come with the first alone.
inline constexpr bool share_scales = code_stages > 1 &&
                                     (held.groups() == 0 || held.group % (code_stages * block_columns) == 0);

/// Those of the first of code_stages stages.
__device__ inline uint32 codes_at(uint32 shared, int stage, int block) {
    return shared + gemm::geometry.left_at() + stage * gemm::geometry.left_bytes() +
           block * code_stages * held.code_bytes();
}
__device__ inline uint32 extra_at(uint32 shared, int stage, int block) {
    return shared + gemm::geometry.extra_at() + stage * gemm::geometry.extra_bytes() +
           block * held.extra_bytes();
}

/// The weight that gives a block of the tile: gate blocks, then up blocks.
__device__ inline const Weight& weight_of_block(const Tensors& tensors, int block) {
    return tensors.weight_of(block / weight_blocks);
}
/// The block's row of blocks in that weight. Behind the last one there is nothing: results of rows that do
/// not exist are made of it and are not stored.
__device__ inline int row_of_blocks(const gemm::Work& tile, int block) {
    return min(tile.row / block_rows + block % weight_blocks, all_blocks - 1);
}

/// As linear::gemm::MatrixWeights.
class PackedWeights {
  public:
    __device__ explicit PackedWeights(const Tensors& tensors) : tensors_(tensors) {}

    __device__ void load(uint32 shared, const gemm::Work& tile, int k, int stage) const {
#pragma unroll
        for (int block = 0; block < tile_blocks; ++block) {
            load_codes(shared, tile, k, stage, block);
            load_rest(shared, tile, k, stage, block);
        }
    }

    /// Of one of the tile's blocks of rows, from that stage on: code_stages of them.
    __device__ void load_codes(uint32 shared, const gemm::Work& tile, int k, int stage, int block) const {
        const Weight& weight = weight_of_block(tensors_, block);
        const int64 row = row_of_blocks(tile, block);
        load_bytes<gemm::weight_hint>(codes_at(shared, stage, block),
                                      weight.codes + (row * gemm::k_tiles + k) * held.code_bytes(),
                                      code_stages * held.code_bytes(), gemm::full_barrier(shared, stage));
    }
    /// What belongs to the codes of one stage: scales and zero points of groups.
    __device__ void load_rest(uint32 shared, const gemm::Work& tile, int k, int stage, int block) const {
        if constexpr (held.groups() > 0) {
            const Weight& weight = weight_of_block(tensors_, block);
            const int64 row = row_of_blocks(tile, block);
            const int64 first = (row * groups + held.first_group(k)) * block_rows;
            const uint32 to = extra_at(shared, stage, block);
            const uint32 barrier = gemm::full_barrier(shared, stage);
            load_bytes<gemm::weight_hint>(to, weight.scales + first, held.scale_bytes(), barrier);
            if constexpr (has_zeros)
                load_bytes<gemm::weight_hint>(to + held.scale_bytes(), weight.zeros + first,
                                              held.zero_bytes(), barrier);
        }
    }

  private:
    const Tensors& tensors_;
};

}  // namespace hone::quantized_linear::w16
