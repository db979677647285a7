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
/// Whether warps share the copies. With a gate one thread issues most: calls take as long or less. But they
/// are 2 to 4 % faster shared where stages are taken two at a time in tiles of one block of each weight, and
/// groups bring more copies or ping-pong keeps the tensor cores busy.
inline constexpr bool share_copies =
    products == 1 || (form.pairs && tile_blocks == 2 && (held.groups() > 0 || gemm::ping_pong));
/// Stages whose codes of a block stand one behind the other, as they do in memory: one copy brings them, with
/// the first.
inline constexpr int code_stages = share_copies ? form.stage_steps() : 1;
/// Whether two stages that are multiplied together have the same scales.
inline constexpr bool alike_scales = held.groups() == 0 || held.group % (2 * block_columns) == 0;
/// Whether these, too, come with the first stage alone.
inline constexpr bool share_scales = code_stages == 2 && alike_scales;

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
            const Place at = place_of(shared, tile, stage, block);
            load_codes(shared, at, k, stage, block);
            load_rest(shared, at, k, stage, block);
        }
    }

    /// Of one of the tile's blocks of rows, from that stage on: code_stages of them.
    __device__ void load_codes(uint32 shared, const gemm::Work& tile, int k, int stage, int block) const {
        load_codes(shared, place_of(shared, tile, stage, block), k, stage, block);
    }
    /// What belongs to the codes of one stage: scales and zero points of groups.
    __device__ void load_rest(uint32 shared, const gemm::Work& tile, int k, int stage, int block) const {
        if constexpr (held.groups() > 0)
            load_rest(shared, place_of(shared, tile, stage, block), k, stage, block);
    }

  private:
    /// Where a block's copies come from, and the barrier that counts them.
    struct Place {
        const Weight& weight;
        int64 row;
        uint32 barrier;
    };
    __device__ Place place_of(uint32 shared, const gemm::Work& tile, int stage, int block) const {
        return {weight_of_block(tensors_, block), row_of_blocks(tile, block),
                gemm::full_barrier(shared, stage)};
    }
    __device__ static void load_codes(uint32 shared, const Place& at, int k, int stage, int block) {
        load_bytes<gemm::weight_hint>(codes_at(shared, stage, block),
                                      at.weight.codes + (at.row * gemm::k_tiles + k) * held.code_bytes(),
                                      code_stages * held.code_bytes(), at.barrier);
    }
    __device__ static void load_rest(uint32 shared, const Place& at, int k, int stage, int block) {
        if constexpr (held.groups() > 0) {
            const int64 first = (at.row * groups + held.first_group(k)) * block_rows;
            const uint32 to = extra_at(shared, stage, block);
            load_bytes<gemm::weight_hint>(to, at.weight.scales + first, held.scale_bytes(), at.barrier);
            if constexpr (has_zeros)
                load_bytes<gemm::weight_hint>(to + held.scale_bytes(), at.weight.zeros + first,
                                              held.zero_bytes(), at.barrier);
        }
    }

    const Tensors& tensors_;
};

}  // namespace hone::quantized_linear::w16
