// The producer of products of experts by warpgroups (roles.cuh): keeps the ring of stages full. Weights come
// by copies that one thread issues; so do rows of x that stand sorted. Rows that are gathered come by copies
// of 16 bytes, which all four warps issue and place as tensor copies would, in 128-byte swizzle.
//
// A stage of gathered rows is handed over when its copies have landed: each thread waits for its own, makes
// them visible to the tensor cores (fence of the asynchronous proxy), and its warp arrives once. Stages asked
// for later stay under way.
#pragma once

#include "device/elect.cuh"
#include "expert_linear/wgmma/walk.cuh"

namespace hone::expert_linear::wgmma {

/// Arrivals at a full barrier: of the thread that announces copies, and of the warps that gather.
inline constexpr int full_arrivals = Sources::x_by_token ? 1 + 4 : 1;

/// Weights that are matrices in memory as they are in the ring, those of all experts one after the other.
class MatrixWeights {
  public:
    __device__ MatrixWeights(const TensorMap& weight, const TensorMap& up) : weight_(weight), up_(up) {}

    __device__ void prefetch() const {
        prefetch_map(weight_);
        if constexpr (gated) prefetch_map(up_);
    }
    /// Those of a tile; load(shared, k, stage) brings its step k.
    struct OfTile {
        const TensorMap& weight;
        const TensorMap& up;
        int first;

        __device__ void load(uint32 shared, int k, int stage) const {
            gemm::load_rows<swapped, gemm::weight_hint>(shared, weight, 0, k, first, stage);
            if constexpr (gated)
                gemm::load_rows<swapped, gemm::weight_hint>(shared, up, geometry.weight_box(), k, first,
                                                            stage);
        }
    };
    __device__ OfTile of(const Tile& tile) const {
        return {weight_, up_, tile.expert * columns + first_column(tile)};
    }

  private:
    const TensorMap& weight_;
    const TensorMap& up_;
};

/// Those of sorted x: with a tile's rows, and a narrow tile's.
struct XMaps {
    const TensorMap& whole;
    const TensorMap& narrow;
};

/// What one thread asks for: of a stage its weights, and sorted rows of x.
class Boxes {
  public:
    __device__ Boxes(uint32 shared, const XMaps& x, int places) : shared_(shared), x_(x), places_(places) {}

    template <class OfTile>
    __device__ void load(const OfTile& weights, const Tile& tile, int k, int stage) const {
        const int x_rows = Sources::x_by_token ? 0 : x_box_rows(tile, places_);
        barrier_arrive_expecting(gemm::full_barrier(shared_, stage),
                                 geometry.stage_bytes() - x_bytes + x_rows * x_pitch);
        weights.load(shared_, k, stage);
        if constexpr (!Sources::x_by_token)
            gemm::load_rows<!swapped, gemm::x_hint>(shared_, is_narrow(tile) ? x_.narrow : x_.whole, 0, k,
                                                    first_row(tile, places_), stage);
    }

  private:
    uint32 shared_;
    const XMaps& x_;
    int places_;
};

/// Sorted rows: by one warp, of which one lane issues.
template <class Weights>
__device__ inline void produce_sorted(uint32 shared, const Boxes& boxes, const Weights& weights,
                                      const Tensors& tensors) {
    const bool leads = elect();
    gemm::Ring ring;
    Walk walk(tensors);
    while (walk.next()) {
        if (leads) {
            const typename Weights::OfTile of_tile = weights.of(walk.tile());
            const int first = walk.steps().first_k;
            for (int k = 0; k < walk.steps().k_count; ++k, ring.advance()) {
                barrier_wait(gemm::empty_barrier(shared, ring.stage), ring.parity ^ 1);
                boxes.load(of_tile, walk.tile(), first + k, ring.stage);
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

/// Stages whose gathered rows are under way, by all four warps: handed over in their order, each when its
/// copies have landed in all lanes.
class RowsUnderWay {
  public:
    __device__ explicit RowsUnderWay(uint32 shared) : shared_(shared) {}

    /// A thread has issued its copies of one more stage.
    __device__ void add() {
        if (++pending_ <= gathers_ahead) return;
        land<gathers_ahead>();
        hand_over();
    }
    __device__ void finish() {
        land<0>();
        while (pending_ > 0) hand_over();
    }

  private:
    /// Those of all stages but the last `left` ones.
    template <int left>
    __device__ static void land() {
        wait_for_copies<left>();
        fence_async_proxy();
        __syncwarp();
    }
    __device__ void hand_over() {
        if (lane_index() == 0) barrier_arrive(gemm::full_barrier(shared_, landed_.stage));
        landed_.advance();
        --pending_;
    }

    uint32 shared_;
    gemm::Ring landed_;
    int pending_ = 0;
};

/// Rows by the call's order: by all four warps of the warpgroup.
template <class Weights>
class GatheringProducer {
  public:
    __device__ GatheringProducer(uint32 shared, const Boxes& boxes, const Weights& weights,
                                 const Tensors& tensors)
        : shared_(shared),
          boxes_(boxes),
          weights_(weights),
          tensors_(tensors),
          leads_(elect() && threadIdx.x < 32),
          under_way_(shared) {}

    __device__ void run() {
        Walk walk(tensors_);
        while (walk.next()) {
            const typename Weights::OfTile of_tile = weights_.of(walk.tile());
            Gathered rows;
            rows.locate(tensors_, walk.tile());
            const int first = walk.steps().first_k;
            for (int k = 0; k < walk.steps().k_count; ++k) step(of_tile, walk.tile(), rows, first + k);
        }
        under_way_.finish();
    }

  private:
    __device__ void step(const typename Weights::OfTile& of_tile, const Tile& tile, const Gathered& rows,
                         int k) {
        barrier_wait(gemm::empty_barrier(shared_, asked_.stage), asked_.parity ^ 1);
        if (leads_) boxes_.load(of_tile, tile, k, asked_.stage);
        __syncwarp();
        rows.copy(tensors_, shared_ + x_at_stage + asked_.stage * x_bytes, k);
        commit_copies();
        asked_.advance();
        under_way_.add();
    }

    uint32 shared_;
    const Boxes& boxes_;
    const Weights& weights_;
    const Tensors& tensors_;
    bool leads_;
    gemm::Ring asked_;
    RowsUnderWay under_way_;
};

}  // namespace hone::expert_linear::wgmma
