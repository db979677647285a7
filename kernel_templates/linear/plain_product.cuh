// The variants plain of linear and of quantized_linear, the part that they share: any size, any chip; CUDA
// cores alone. The including .cu knows how operands come from global memory (`run` says what it asks of
// them).
//
// Data's way: a block computes tile_tokens x tile_out results. It walks over `in`, tile_in columns a step: x
// and the weights (two where gated) come from global memory into registers one step ahead, then, as floats,
// into one of two buffers in shared memory, column-major, so that a thread reads the numbers of its
// neighbouring tokens and results as vectors; it adds their products for thread_tokens x thread_out results
// in registers. One barrier a step: a buffer is written again only after the barrier in between.
#pragma once

#include "device/packet.cuh"
#include "device/sync.cuh"
#include "linear/epilogue.cuh"

namespace hone::linear::plain_product {

inline constexpr int tile_tokens = Tuned::tile_tokens;
inline constexpr int tile_out = Tuned::tile_out;
inline constexpr int tile_in = Tuned::tile_in;
inline constexpr int thread_tokens = Tuned::thread_tokens;
inline constexpr int thread_out = Tuned::thread_out;
/// Elements, or bytes of codes, of a load.
inline constexpr int vector = Tuned::vector;
inline constexpr bool programmatic = Tuned::programmatic != 0;
/// Threads that share a row of results of the tile, and all.
inline constexpr int threads_across = tile_out / thread_out;
inline constexpr int threads = tile_tokens / thread_tokens * threads_across;
inline constexpr int steps = (in + tile_in - 1) / tile_in;
static_assert(in % vector == 0, "packets must not reach past the end of a row");
static_assert(tile_in % vector == 0, "packets must not reach past the end of a step");

/// A tile of one operand in shared memory. Four floats more than rows, so that vectors stay aligned and
/// columns start in distinct banks.
template <int rows>
struct Tile {
    alignas(16) float values[tile_in][rows + 4];
};

/// `rows` x tile_in elements of a matrix that stands row by row, on their way to shared memory.
template <class T, int rows>
struct StagedRows {
    static constexpr int packets_a_row = tile_in / vector;
    static constexpr int count = rows * packets_a_row;
    static constexpr int rounds = (count + threads - 1) / threads;

    Packet<T, vector> packets[rounds];
    float scales[rounds];

    /// Rows beyond `limit` repeat the last; columns beyond the matrix are zeros. `scale` knows that of a
    /// (row, column), which a packet shares.
    template <class ScaleOf>
    __device__ void load(const T* from, int64 stride, int64 first_row, int64 limit, int step, ScaleOf scale) {
#pragma unroll
        for (int i = 0; i < rounds; ++i) {
            const int index = threadIdx.x + i * threads;
            const int64 row = min(first_row + index / packets_a_row, limit - 1);
            const int wanted = step * tile_in + index % packets_a_row * vector;
            const int column = wanted < in ? wanted : 0;
            packets[i] = load_packet<T, vector>(from + row * stride + column);
            scales[i] = scale(row, column);
            if (wanted >= in) packets[i] = {};
        }
    }
    __device__ void store(Tile<rows>& to, int) const {
#pragma unroll
        for (int i = 0; i < rounds; ++i) {
            const int index = threadIdx.x + i * threads;
            if ((i + 1) * threads > count && index >= count) continue;
            float values[vector];
            unpack(packets[i], values);
#pragma unroll
            for (int v = 0; v < vector; ++v)
                to.values[index % packets_a_row * vector + v][index / packets_a_row] = values[v] * scales[i];
        }
    }
};

struct Buffers {
    Tile<tile_tokens> x;
    Tile<tile_out> weight[products];
};

/// A thread's numbers of one column: every group of `width` neighbours is a vector, groups are
/// `width` * `lanes` apart.
template <int count_, int lanes>
struct Numbers {
    static constexpr int count = count_;
    static constexpr int width = count % 4 == 0 ? 4 : count % 2 == 0 ? 2 : 1;
    float values[count];

    __device__ static int place(int lane, int i) { return (i / width * lanes + lane) * width + i % width; }
    __device__ void read(const float* column, int lane) {
#pragma unroll
        for (int i = 0; i < count; i += width) {
            const float* from = column + place(lane, i);
            if constexpr (width == 4) {
                const float4 v = *reinterpret_cast<const float4*>(from);
                values[i] = v.x;
                values[i + 1] = v.y;
                values[i + 2] = v.z;
                values[i + 3] = v.w;
            } else {
#pragma unroll
                for (int j = 0; j < width; ++j) values[i + j] = from[j];
            }
        }
    }
};
using TokenNumbers = Numbers<thread_tokens, tile_tokens / thread_tokens>;
using OutNumbers = Numbers<thread_out, threads_across>;

struct Sums {
    float values[products][thread_tokens][thread_out];
};

__device__ inline void multiply(const Buffers& from, int token_lane, int out_lane, Sums& sums) {
#pragma unroll
    for (int k = 0; k < tile_in; ++k) {
        TokenNumbers x;
        x.read(from.x.values[k], token_lane);
#pragma unroll
        for (int product = 0; product < products; ++product) {
            OutNumbers weight;
            weight.read(from.weight[product].values[k], out_lane);
#pragma unroll
            for (int i = 0; i < thread_tokens; ++i) {
#pragma unroll
                for (int j = 0; j < thread_out; ++j)
                    sums.values[product][i][j] =
                        fmaf(x.values[i], weight.values[j], sums.values[product][i][j]);
            }
        }
    }
}

template <class Tensors>
__device__ void store(const Tensors& tensors, int64 first_token, int first_column, int token_lane,
                      int out_lane, const Sums& sums) {
#pragma unroll
    for (int i = 0; i < thread_tokens; ++i) {
        const int64 token = first_token + TokenNumbers::place(token_lane, i);
#pragma unroll
        for (int j = 0; j < thread_out; ++j) {
            const int column = first_column + OutNumbers::place(out_lane, j);
            if (token >= tensors.tokens || column >= out) continue;
            float both[products];
#pragma unroll
            for (int product = 0; product < products; ++product) both[product] = sums.values[product][i][j];
            tensors.out[token * tensors.out_stride + column] =
                from_float<Element>(tensors.finish(token, column, both));
        }
    }
}

/// The whole kernel. `StagedX` and `StagedWeight` hold a thread's part of one step's operand between
/// load(tensors, first_token, step), load(tensors, product, first_column, step) and store(tile, step).
template <class StagedX, class StagedWeight, class Tensors>
__device__ void run(const Tensors& tensors) {
    __shared__ Buffers buffers[2];
    if constexpr (programmatic) {
        release_successor();
        wait_for_predecessor();
    }
    constexpr int across = (out + tile_out - 1) / tile_out;
    const int64 first_token = static_cast<int64>(blockIdx.x / across) * tile_tokens;
    const int first_column = static_cast<int>(blockIdx.x % across) * tile_out;
    const int token_lane = threadIdx.x / threads_across;
    const int out_lane = threadIdx.x % threads_across;

    StagedX x;
    StagedWeight weight[products];
    const auto load = [&](int step) {
        x.load(tensors, first_token, step);
#pragma unroll
        for (int product = 0; product < products; ++product)
            weight[product].load(tensors, product, first_column, step);
    };
    Sums sums = {};
    load(0);
    for (int step = 0; step < steps; ++step) {
        Buffers& buffer = buffers[step % 2];
        x.store(buffer.x, step);
#pragma unroll
        for (int product = 0; product < products; ++product)
            weight[product].store(buffer.weight[product], step);
        __syncthreads();
        if (step + 1 < steps) load(step + 1);
        multiply(buffer, token_lane, out_lane, sums);
    }
    store(tensors, first_token, first_column, token_lane, out_lane, sums);
}

}  // namespace hone::linear::plain_product
