// The producer of variant wgmma (kernel.cu): keeps the ring of stages full. Weights come by tensor copies,
// which one thread issues; so do rows of x that stand sorted. Rows that are gathered come by copies of 16
// bytes, which all four warps issue and place as the tensor copies would, in 128-byte swizzle.
//
// A stage of gathered rows is handed over when its copies have landed: each thread waits for its own, makes
// them visible to the tensor cores (fence of the asynchronous proxy), and its warp arrives once. Stages asked
// for later stay under way.
#pragma once

#include "expert_linear/wgmma/tile.cuh"

namespace hone::expert_linear::wgmma {

struct Maps {
    const TensorMap& x;  ///< of sorted rows
    const TensorMap& weight;
    const TensorMap& up;
};

/// Arrivals at a full barrier: of the thread that announces copies, and of the warps that gather.
inline constexpr int full_arrivals = gathers ? 1 + 4 : 1;

/// One thread's part of the weights, and of sorted rows.
__device__ inline void load_boxes(uint32 shared, const Maps& maps, const Tile& tile, int k, int stage) {
    constexpr int bytes = geometry.stage_bytes() - (gathers ? x_bytes : 0);
    barrier_arrive_expecting(gemm::full_barrier(shared, stage), bytes);
    const int first = tile.expert * columns + tile.column * tile_columns;
    gemm::load_rows<swapped, gemm::weight_hint>(shared, maps.weight, 0, k, first, stage);
    if constexpr (gated)
        gemm::load_rows<swapped, gemm::weight_hint>(shared, maps.up, geometry.weight_box(), k, first, stage);
    if constexpr (!gathers) gemm::load_rows<!swapped, gemm::x_hint>(shared, maps.x, 0, k, tile.first, stage);
}

/// Sorted rows: by one warp, of which the first lane issues.
__device__ inline void produce_sorted(uint32 shared, const Maps& maps, const Tiles& tiles) {
    gemm::Ring ring;
    Tile tile;
    for (int64 work = blockIdx.x; tiles.find(work, tile); work += gridDim.x) {
        if (lane_index() == 0) {
            for (int k = 0; k < gemm::k_tiles; ++k, ring.advance()) {
                barrier_wait(gemm::empty_barrier(shared, ring.stage), ring.parity ^ 1);
                load_boxes(shared, maps, tile, k, ring.stage);
            }
        }
        __syncwarp();
    }
}

/// A thread's rows of a tile: it copies one chunk of 16 bytes of every 16th row.
struct Gathered {
    static constexpr int rounds = (tile_rows + 15) / 16;
    int rows[rounds];  ///< of x

    __device__ void locate(const Tensors& tensors, const Tile& tile) {
#pragma unroll
        for (int i = 0; i < rounds; ++i) {
            const int place = min(tile.first + i * 16 + static_cast<int>(threadIdx.x) / 8, tile.end - 1);
            rows[i] = tensors.x_row(place);
        }
    }
    /// Columns past the end of a row become zeros.
    __device__ void copy(const Tensors& tensors, uint32 to, int k) const {
        const int chunk = static_cast<int>(threadIdx.x) % 8;
        const int column = k * 64 + chunk * 8;
        const bool exists = column < in;
#pragma unroll
        for (int i = 0; i < rounds; ++i) {
            const int row = i * 16 + static_cast<int>(threadIdx.x) / 8;
            if (tile_rows % 16 != 0 && row >= tile_rows) continue;
            const Element* const from = tensors.x + rows[i] * tensors.x_stride + (exists ? column : 0);
            copy_chunk_async_or_zero(to + swizzled_offset<64>(row, chunk), from, exists);
        }
    }
};

/// Rows by the call's order: by all four warps of the warpgroup.
class GatheringProducer {
  public:
    __device__ GatheringProducer(uint32 shared, const Maps& maps, const Tensors& tensors)
        : shared_(shared), maps_(maps), tensors_(tensors) {}

    __device__ void run(const Tiles& tiles) {
        Tile tile;
        for (int64 work = blockIdx.x; tiles.find(work, tile); work += gridDim.x) {
            Gathered rows;
            rows.locate(tensors_, tile);
            for (int k = 0; k < gemm::k_tiles; ++k) step(tile, rows, k);
        }
        wait_for_copies<0>();
        fence_async_proxy();
        __syncwarp();
        while (pending_ > 0) hand_over();
    }

  private:
    __device__ void step(const Tile& tile, const Gathered& rows, int k) {
        barrier_wait(gemm::empty_barrier(shared_, asked_.stage), asked_.parity ^ 1);
        if (threadIdx.x == 0) load_boxes(shared_, maps_, tile, k, asked_.stage);
        __syncwarp();
        rows.copy(tensors_, shared_ + x_at_stage + asked_.stage * x_bytes, k);
        commit_copies();
        asked_.advance();
        if (++pending_ <= gathers_ahead) return;
        wait_for_copies<gathers_ahead>();
        fence_async_proxy();
        __syncwarp();
        hand_over();
    }
    /// The oldest stage under way has landed, in all lanes.
    __device__ void hand_over() {
        if (lane_index() == 0) barrier_arrive(gemm::full_barrier(shared_, landed_.stage));
        landed_.advance();
        --pending_;
    }

    uint32 shared_;
    const Maps& maps_;
    const Tensors& tensors_;
    gemm::Ring asked_;
    gemm::Ring landed_;
    int pending_ = 0;
};

}  // namespace hone::expert_linear::wgmma
