// The roles of variant drawn (kernel.cu): a producer and consumers as wgmma's, which take their tiles in the
// order in which the block draws them.
#pragma once

#include "device/elect.cuh"
#include "expert_linear/drawn/numbers.cuh"
#include "expert_linear/wgmma/roles.cuh"

namespace hone::expert_linear::drawn {

namespace gemm = linear::gemm;
using wgmma::Boxes;
using wgmma::geometry;
using wgmma::MatrixWeights;
using wgmma::Sources;
using wgmma::Tiles;

/// Warps that produce: all four where they gather rows, else the one that issues.
inline constexpr int producer_warps = Sources::x_by_token ? 4 : 1;
/// Of the words and barriers of numbers.
inline constexpr int numbers_at = geometry.barriers_at() + 2 * gemm::stages * 8;
static_assert(
    gemm::k_tiles >= gemm::stages,
    "a number is given when the one before the last has been taken: rows handed over late are no older");

__device__ inline Deal deal_of(const Tensors& tensors, const Tiles& tiles) {
    const int64 at = partials_at(tensors.places(), combines ? columns * sizeof(Element) : 0,
                                 Sources::copies_x ? in * sizeof(Element) : 0);
    const int64 count = tiles.count();
    constexpr int64 most = (int64{1} << count_bits) - 1;  // more where the call's starts are wrong
    return {reinterpret_cast<uint64*>(reinterpret_cast<uint8*>(tensors.workspace) + at),
            static_cast<int>(count < most ? count : most)};
}

/// Keeps the ring full. One thread asks for weights, and for rows of x that stand sorted; gathered rows are
/// copied by all four warps, and a stage of them is handed over when its copies have landed.
class Producer {
  public:
    __device__ Producer(uint32 shared, const Boxes& boxes, const MatrixWeights& weights,
                        const Tensors& tensors)
        : shared_(shared),
          boxes_(boxes),
          weights_(weights),
          tensors_(tensors),
          under_way_(shared),
          leads_(elect() && threadIdx.x < 32) {}

    __device__ void run() {
        const Tiles tiles(tensors_);
        const Deal deal = deal_of(tensors_, tiles);
        Numbers given(shared_ + numbers_at);
        Numbers taken(shared_ + numbers_at);
        if (leads_) {
            if (deal.first() >= 0) deal.open();
            given.give(deal.first());
        }
        __syncwarp();
        for (int number = taken.take(); number >= 0; number = taken.take()) {
            Tile tile;
            tiles.find(number, tile);
            uint64 drawn = 0;
            if (leads_) drawn = deal.draw();
            ask_for(tile);
            if (leads_) given.give(deal.number(drawn));
            __syncwarp();
        }
        if constexpr (Sources::x_by_token) under_way_.finish();
    }

  private:
    __device__ void ask_for(const Tile& tile) {
        const MatrixWeights::OfTile of_tile = weights_.of(tile);
        wgmma::Gathered rows;
        if constexpr (Sources::x_by_token) rows.locate(tensors_, tile);
        int k = first_step(tile);
        for (int step = 0; step < gemm::k_tiles; ++step) {
            if (leads_ || Sources::x_by_token)
                barrier_wait(gemm::empty_barrier(shared_, asked_.stage), asked_.parity ^ 1);
            if (leads_) boxes_.load(of_tile, tile, k, asked_.stage);
            if constexpr (Sources::x_by_token) gather(rows, k);
            asked_.advance();
            if (++k == gemm::k_tiles) k = 0;
        }
    }
    /// Of its sums: tiles of neighbouring columns begin apart, so that blocks that run beside each other do
    /// not read the same columns of rows that stand a power of two apart; the same in every call.
    __device__ static int first_step(const Tile& tile) { return tile.column * 5 % gemm::k_tiles; }
    __device__ void gather(const wgmma::Gathered& rows, int k) {
        __syncwarp();
        rows.copy(tensors_, shared_ + wgmma::x_at_stage + asked_.stage * wgmma::x_bytes, k);
        commit_copies();
        under_way_.add();
    }

    uint32 shared_;
    const Boxes& boxes_;
    const MatrixWeights& weights_;
    const Tensors& tensors_;
    wgmma::RowsUnderWay under_way_;
    bool leads_;
    gemm::Ring asked_;
};

__device__ inline void consume(uint32 shared, const Tensors& tensors, int warpgroup) {
    const Tiles tiles(tensors);
    const wgmma::Writer writer(shared, tensors, warpgroup);
    Numbers numbers(shared + numbers_at);
    gemm::Ring ring;
    for (int number = numbers.take(); number >= 0; number = numbers.take()) {
        gemm::Sums sums;
        gemm::Work steps;
        steps.first_k = 0;
        steps.k_count = gemm::k_tiles;
        gemm::ElementProduct().multiply(shared, warpgroup, steps, ring, sums, [] {});
        Tile tile;
        tiles.find(number, tile);
        writer.store(sums, tile);
    }
}

__device__ inline void run(const Tensors& tensors, const wgmma::XMaps& x, const MatrixWeights& weights) {
    const uint32 shared = wgmma::ring_at();
    const int warpgroup = __shfl_sync(all_lanes, static_cast<int>(threadIdx.x) / 128, 0);
    if (threadIdx.x == 0) Numbers(shared + numbers_at).init(producer_warps + gemm::consumers * 4);
    wgmma::begin(shared, x, weights);
    if (warpgroup > 0) {
        consume(shared, tensors, warpgroup - 1);
    } else if (threadIdx.x < 32 * producer_warps) {
        const Boxes boxes(shared, x, tensors.places());
        Producer(shared, boxes, weights, tensors).run();
    }
}

}  // namespace hone::expert_linear::drawn
