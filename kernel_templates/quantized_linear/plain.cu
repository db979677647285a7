// Quantised linear, variant plain: any format, any size, any chip; CUDA cores alone.
//
// Data's way: a block computes tile_tokens x tile_out results. It walks over `in`, 16 columns a step: x and
// the codes of the weights (two where gated), with their scales, come from global memory into registers one
// step ahead, then, as the floats that they stand for, into one of two buffers in shared memory,
// column-major, so that a thread reads the numbers of its neighbouring tokens and results as vectors; it adds
// their products for thread_tokens x thread_out results in registers. One barrier a step: a buffer is written
// again only after the barrier in between. A norm, and codes of 16-bit x, are a launch before it.
#include "device/sync.cuh"
#include "quantized_linear/tensors.cuh"

namespace hone::quantized_linear::plain {

inline constexpr int tile_tokens = Tuned::tile_tokens;
inline constexpr int tile_out = Tuned::tile_out;
inline constexpr int thread_tokens = Tuned::thread_tokens;
inline constexpr int thread_out = Tuned::thread_out;
/// Elements or bytes of a load.
inline constexpr int vector = Tuned::vector;
inline constexpr bool programmatic = Tuned::programmatic != 0;
/// Columns of a step: those that a thread's word of packed codes covers.
inline constexpr int tile_in = 16;
/// Threads that share a row of results of the tile, and all.
inline constexpr int threads_across = tile_out / thread_out;
inline constexpr int threads = tile_tokens / thread_tokens * threads_across;
inline constexpr int steps = (in + tile_in - 1) / tile_in;
static_assert(in % vector == 0, "packets must not reach past the end of a row");
static_assert(tile_out % block_rows == 0, "tiles are whole blocks of packed codes");

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

/// x as the products take it: 16-bit elements, or codes with a scale a row or a block.
struct StagedX : StagedRows<Conditional<is_packed, Element, Code>::type, tile_tokens> {
    __device__ void load(const Tensors& from, int64 first_token, int step) {
        using T = Conditional<is_packed, Element, Code>::type;
        StagedRows::load(
            static_cast<const T*>(from.x), from.x_stride, first_token, from.tokens, step,
            [&](int64 token, int column) {
                if constexpr (is_packed) return 1.0f;
                return from.x_scales[token * from.x_scale_stride + (has_blocks ? column / scaled_block : 0)];
            });
    }
};

/// Codes that stand row by row: w8a8 and fp8.
struct StagedCodes : StagedRows<Code, tile_out> {
    __device__ void load(const Weight& from, int first_row, int step) {
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
        /// Of the tile; the other is 8 below.
        __device__ int row() const { return block * block_rows + thread / 32 * 16 + thread % 32 / 4; }
        int part, thread, block;
    };

    /// Blocks beyond the weight repeat the last.
    __device__ void load(const Weight& from, int first_row, int step) {
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

__device__ inline void store(const Tensors& tensors, int64 first_token, int first_column, int token_lane,
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
            tensors.result[token * tensors.out_stride + column] =
                from_float<Element>(tensors.finish(token, column, both));
        }
    }
}

__device__ inline void run(const Tensors& tensors) {
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
        weight[0].load(tensors.weight, first_column, step);
        if constexpr (gated) weight[products - 1].load(tensors.up, first_column, step);
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

}  // namespace hone::quantized_linear::plain

extern "C" __global__ void __launch_bounds__(hone::quantized_linear::plain::threads)
    quantized_linear_plain(HONE_QUANTIZED_PARAMETERS) {
    hone::quantized_linear::plain::run(HONE_QUANTIZED_TENSORS);
}

namespace hone::linear::normalise {
inline constexpr int vector = quantized_linear::plain::vector;
}
namespace hone::quantized_linear::quantise {
inline constexpr int vector = plain::vector;
}

#include "linear/normalise.cuh"
#include "quantized_linear/quantise.cuh"
