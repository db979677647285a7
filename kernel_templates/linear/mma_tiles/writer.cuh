// How a warp of the tiled product (product.cuh) brings its sums to memory: rounded through shared memory,
// 16 bytes a lane, or as partial sums (split).
#pragma once

#include "device/mma.cuh"
#include "device/packet.cuh"
#include "device/shared_tile.cuh"
#include "linear/mma_tiles/combine.cuh"

namespace hone::linear::tiles {

/// A thread's sums: of row block b and column block j; gated: columns of the gate, then those of up.
using Sums = MmaSums[row_blocks][column_blocks];

class Writer {
  public:
    /// `staging`: shared memory for all warps' results. `row`, `column`: of the warp's first result.
    __device__ Writer(uint32 staging, const Results& results, int row, int column)
        : shared_(staging + threadIdx.x / 32 * rows * columns * 2),
          results_(results),
          row_(row),
          column_(column),
          lane_(threadIdx.x % 32) {}

    /// A residual takes its result's place in shared memory before; the thread that reads it from global
    /// memory also writes the result there.
    __device__ void store(const Sums& sums) {
        if constexpr (has_residual) {
            for_chunks([&](uint32 place, int token, int column) {
                store_shared(place, load_word<LoadHint::normal, 16>(
                                        results_.residual + token * results_.residual_stride + column));
            });
            __syncwarp();
        }
        stage(sums);
        __syncwarp();
        for_chunks([&](uint32 place, int token, int column) {
            store_word<StoreHint::normal, 16>(results_.result + token * results_.out_stride + column,
                                              load_shared_16(place));
        });
    }

    __device__ void store_partials(const Sums& sums, int part) {
        for_pairs([&](int b, int j, int half) {
            const Pair at{row_ + 16 * b + 8 * half + lane_ / 4, column_ + 8 * j + lane_ % 4 * 2};
#pragma unroll
            for (int product = 0; product < products; ++product) {
                const float(&sum)[4] = sums[b][product * result_blocks + j].values;
                store_partial(results_, at, part, product, sum[2 * half], sum[2 * half + 1]);
            }
        });
    }

  private:
    static constexpr int rows = geometry.warp_rows();
    static constexpr int columns = geometry.warp_results();
    static constexpr int result_blocks = columns / 8;

    /// Calls visit(b, j, half) for every pair of neighbouring results that a thread holds.
    template <class Visit>
    __device__ static void for_pairs(Visit visit) {
#pragma unroll
        for (int b = 0; b < row_blocks; ++b) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
#pragma unroll
                for (int j = 0; j < result_blocks; ++j) visit(b, j, half);
            }
        }
    }
    /// Calls visit(shared address, token, column) for this lane's 16 bytes of the results, where they exist.
    template <class Visit>
    __device__ void for_chunks(Visit visit) const {
        constexpr int chunks = columns / 8;
        const int chunk = lane_ % chunks;
        const int column = column_ + chunk * 8;
        if (!whole_columns && column >= out) return;
#pragma unroll
        for (int first = 0; first < rows; first += 32 / chunks) {
            const int row = first + lane_ / chunks;
            if (row_ + row < results_.tokens)
                visit(shared_ + swizzled_offset<columns>(row, chunk), row_ + row, column);
        }
    }

    /// Rounds all results into shared memory.
    __device__ void stage(const Sums& sums) const {
        uint32 bias[result_blocks] = {};
        if constexpr (has_bias) {
#pragma unroll
            for (int j = 0; j < result_blocks; ++j) {
                const int column = min(column_ + 8 * j + lane_ % 4 * 2, out - 2);
                bias[j] = load_word<LoadHint::normal, 4>(results_.bias + column);
            }
        }
        for_pairs([&](int b, int j, int half) {
            const uint32 place =
                shared_ + swizzled_offset<columns>(16 * b + 8 * half + lane_ / 4, j) + lane_ % 4 * 4;
            const float(&sum)[4] = sums[b][j].values;
            float first = sum[2 * half];
            float second = sum[2 * half + 1];
            if constexpr (gated) {
                const float(&up)[4] = sums[b][result_blocks + j].values;
                first = join_gated(first, up[2 * half]);
                second = join_gated(second, up[2 * half + 1]);
            } else {
                if constexpr (has_bias) add_pair(bias[j], first, second);
                first = activate(first);
                second = activate(second);
                if constexpr (has_residual) add_pair(load_shared(place), first, second);
            }
            store_shared(place, pack_pair(Element{}, first, second));
        });
    }
    __device__ static void add_pair(uint32 pair, float& first, float& second) {
        first += to_float(Element{static_cast<uint16>(pair)});
        second += to_float(Element{static_cast<uint16>(pair >> 16)});
    }

    uint32 shared_;
    const Results& results_;
    int row_;
    int column_;
    int lane_;
};

}  // namespace hone::linear::tiles
