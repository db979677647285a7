// How a warpgroup of the fp32 tensor-core product (product.cuh) brings its sums to memory: from the
// registers, where four lanes hold 32 bytes of a row (swapped: eight lanes hold 32 bytes of a token), so that
// every sector of level 2 is written as a whole; with cluster_k after adding up those of all blocks.
#pragma once

#include "device/packet.cuh"
#include "device/shared_tile.cuh"
#include "linear/tensors.cuh"
#include "linear/wgmma_tf32/tile.cuh"

namespace hone::linear::tf32 {

/// A thread's sums, in the accumulators' map (device/wgmma.cuh).
using Sums = float[row_blocks][tile_n / 2];

__device__ inline void meet_cluster() {
    cluster_arrive();
    cluster_wait();
}

class Writer {
  public:
    __device__ Writer(uint32 shared, const Tensors& tensors, int warpgroup)
        : mine_(shared + (warpgroup * 128 + threadIdx.x % 128) * 16),
          tensors_(tensors),
          row_(warpgroup * result_blocks * block_rows + threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4),
          column_(threadIdx.x % 4 * 2) {}

    __device__ void store(Sums& sums, const Tile& tile) const {
#pragma unroll
        for (int fragment = 0; fragment < geometry.fragments(); ++fragment)
            store_fragment(sums, tile, fragment);
    }

    /// This block's share of the tile, added up over the cluster, in the ring's memory: the block is done
    /// with it, and by the first meeting so are all others.
    __device__ void store_shared(Sums& sums, const Tile& tile, int rank) const {
        meet_cluster();
#pragma unroll
        for (int fragment = 0; fragment < geometry.fragments(); ++fragment) {
            const uint32 to = remote_address(mine_, fragment / geometry.share()) + slot(rank, fragment);
#pragma unroll
            for (int product = 0; product < products; ++product)
                store_remote(to + product * geometry.fragment_bytes(), fragment_of(sums, fragment, product));
        }
        meet_cluster();
#pragma unroll
        for (int fragment = 0; fragment < geometry.fragments(); ++fragment) {
            if (fragment / geometry.share() != rank) continue;
#pragma unroll
            for (int product = 0; product < products; ++product)
                add_up(fragment_of(sums, fragment, product),
                       mine_ + slot(0, fragment) + product * geometry.fragment_bytes());
            store_fragment(sums, tile, fragment);
        }
    }

  private:
    static constexpr int column_blocks = result_columns / 8;

    /// Sums of product `product` of 64 rows x 8 columns of results.
    __device__ static float (&fragment_of(Sums& sums, int fragment, int product))[4] {
        const int block = fragment / column_blocks + (product == 1 && gated_rows ? result_blocks : 0);
        const int first = 4 * (fragment % column_blocks) + (product == 1 && gated_columns ? tile_n / 4 : 0);
        return *reinterpret_cast<float(*)[4]>(&sums[block][first]);
    }

    __device__ void store_fragment(Sums& sums, const Tile& tile, int fragment) const {
        const float(&gate)[4] = fragment_of(sums, fragment, 0);
        const float(&up)[4] = fragment_of(sums, fragment, products - 1);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int row = tile.row + row_ + fragment / column_blocks * block_rows + 8 * half;
            const int column = tile.column + column_ + fragment % column_blocks * 8;
            const float first = gate[2 * half];
            const float second = gate[2 * half + 1];
            if constexpr (swapped) {
                store_result(column, row, first, up[2 * half]);
                store_result(column + 1, row, second, up[2 * half + 1]);
            } else {
                store_pair(row, column, {first, second}, {up[2 * half], up[2 * half + 1]});
            }
        }
    }
    __device__ float finish(int token, int column, float first, float second) const {
        if constexpr (gated) return join_gated(first, second);
        return tensors_.finish(token, column, first);
    }
    __device__ void store_result(int token, int column, float first, float second) const {
        if (token >= tensors_.tokens || column >= out) return;
        tensors_.out[token * tensors_.out_stride + column] = finish(token, column, first, second);
    }
    /// Two columns of one token, the first even; an access where rows begin at multiples of 16 bytes.
    __device__ void store_pair(int token, int column, float2 first, float2 second) const {
        if constexpr (out % 4 != 0) {
            store_result(token, column, first.x, second.x);
            store_result(token, column + 1, first.y, second.y);
            return;
        }
        if (token >= tensors_.tokens || column >= out) return;
        store_packet(tensors_.out + token * tensors_.out_stride + column,
                     Packet<float, 2>{finish(token, column, first.x, second.x),
                                      finish(token, column + 1, first.y, second.y)});
    }

    __device__ static uint32 slot(int sender, int fragment) {
        return (sender * geometry.share() + fragment % geometry.share()) * products *
               geometry.fragment_bytes();
    }
    __device__ static void store_remote(uint32 to, const float (&v)[4]) {
        asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(to), "f"(v[0]), "f"(v[1]),
                     "f"(v[2]), "f"(v[3])
                     : "memory");
    }
    /// In order of the senders' ranks.
    __device__ static void add_up(float (&sum)[4], uint32 first) {
#pragma unroll
        for (int i = 0; i < 4; ++i) sum[i] = 0.0f;
#pragma unroll
        for (int sender = 0; sender < cluster_k; ++sender) {
            const uint4 word = load_shared_16(first + slot(sender, 0));
            sum[0] += __uint_as_float(word.x);
            sum[1] += __uint_as_float(word.y);
            sum[2] += __uint_as_float(word.z);
            sum[3] += __uint_as_float(word.w);
        }
    }

    uint32 mine_;
    const Tensors& tensors_;
    int row_;     ///< row of this thread's first results in the tile
    int column_;  ///< the same
};

}  // namespace hone::linear::tf32
