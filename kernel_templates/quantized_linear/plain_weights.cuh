// Weights of variant plain on their way to shared memory, for calls with a row of x for each token and for
// experts' rows alike (quantized_expert_linear): codes and their scales come from global memory one step
// ahead; into shared memory go the floats that they stand for.
#pragma once

#include "linear/plain_product.cuh"
#include "quantized_linear/tensors.cuh"

namespace hone::quantized_linear::plain {

using namespace linear::plain_product;
static_assert(tile_in == 16, "a step multiplies the columns that a thread's word of packed codes covers");
static_assert(tile_out % block_rows == 0, "tiles are whole blocks of packed codes");

/// Codes that stand row by row: w8a8 and fp8.
struct StagedCodes : StagedRows<Code, tile_out> {
    __device__ void load(const Tensors& tensors, int product, int first_row, int step) {
        const Weight& from = tensors.weight_of(product);
        StagedRows::load(
            reinterpret_cast<const Code*>(from.codes), from.stride, first_row, out, step,
            [&](int64 row, int column) {
                if constexpr (has_blocks)
                    return to_float(from.scales[row / scaled_block * groups + column / scaled_block]);
                return to_float(from.scales[row * from.scale_stride]);
            });
    }
};

/// Packed codes, a fragment's word or a part of it a load: of one step a thread of the warpgroup that
/// layout.cuh speaks of has 4 bytes (w4a16) or 8 (w8a16), in rows g and g + 8 of a warp's 16.
struct StagedPacked {
    static constexpr bool has_nibbles = format == Format::w4a16;
    static constexpr int block_bytes = has_nibbles ? 2048 : 4096;
    static constexpr int parts = (has_nibbles ? 4 : 8) / vector;
    static constexpr int count = tile_out / block_rows * 128 * parts;
    static constexpr int rounds = (count + threads - 1) / threads;

    Packet<uint8, vector> packets[rounds];
    float scales[rounds][2];
    float zeros[rounds][2];

    /// Where a packet belongs.
    struct Place {
        __device__ explicit Place(int index)
            : part(index % parts), thread(index / parts % 128), block(index / parts / 128) {}
        /// The first row, of the tile; the other is 8 below.
        __device__ int row() const { return block * block_rows + thread / 32 * 16 + thread % 32 / 4; }
        int part, thread, block;
    };

    /// Blocks beyond the weight repeat the last.
    __device__ void load(const Tensors& tensors, int product, int first_row, int step) {
        const Weight& from = tensors.weight_of(product);
        constexpr int last_block = static_cast<int>(whole_blocks(out)) - 1;
        constexpr int blocks_across = static_cast<int>(whole_blocks(in));
#pragma unroll
        for (int i = 0; i < rounds; ++i) {
            const Place place(threadIdx.x + i * threads);
            const int64 block_row = min(first_row / block_rows + place.block, last_block);
            const uint8* block = from.codes + (block_row * blocks_across + step / 4) * block_bytes;
            const int half = has_nibbles ? step % 4 * 4 : step % 4 / 2 * 2048 + step % 2 * 8;
            packets[i] = load_packet<uint8, vector>(block + place.thread * 16 + half + place.part * vector);
            load_scales(from, block_row * block_rows + place.row() % block_rows, step * tile_in, i);
        }
    }
    __device__ void load_scales(const Weight& from, int64 row, int column, int i) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            if constexpr (has_nibbles) {
                const int64 at = scale_place(row + 8 * half, group == 0 ? 0 : column / max(group, 1), groups);
                scales[i][half] = to_float(from.scales[at]);
                zeros[i][half] = has_zeros ? static_cast<float>(from.zeros[at]) : 8.0f;
            } else {
                scales[i][half] = to_float(from.scales[min(row + 8 * half, static_cast<int64>(out - 1))]);
                zeros[i][half] = 0.0f;
            }
        }
    }

    __device__ void store(Tile<tile_out>& to, int step) const {
#pragma unroll
        for (int i = 0; i < rounds; ++i) {
            const int index = threadIdx.x + i * threads;
            if ((i + 1) * threads > count && index >= count) continue;
            const Place place(index);
#pragma unroll
            for (int v = 0; v < vector; ++v) {
                const int byte = place.part * vector + v;
                const int code = packets[i].elements[v];
                const int t = 2 * (place.thread % 4);
                if constexpr (has_nibbles) {
                    const int column = t + byte / 2 + byte % 2 * 8;
                    put(to, step, column, place.row(), static_cast<float>(code & 15), i, 0);
                    put(to, step, column, place.row(), static_cast<float>(code >> 4), i, 1);
                } else {
                    const int column = t + byte / 2 % 2 + byte / 4 * 8;
                    const float value = to_float(static_cast<int8>(code));
                    put(to, step, column, place.row(), value, i, byte % 2);
                }
            }
        }
    }
    /// Columns beyond the matrix are zeros, whatever the padding of the last block says.
    __device__ void put(Tile<tile_out>& to, int step, int column, int row, float code, int i,
                        int half) const {
        const bool exists = in % tile_in == 0 || step * tile_in + column < in;
        const float zero = half == 0 ? zeros[i][0] : zeros[i][1];
        const float scale = half == 0 ? scales[i][0] : scales[i][1];
        to.values[column][row + 8 * half] = exists ? (code - zero) * scale : 0.0f;
    }
};
using StagedWeight = Conditional<is_packed, StagedPacked, StagedCodes>::type;

}  // namespace hone::quantized_linear::plain
