// Quantized linear, variant stream, for 1 to 4 tokens of packed weights: many small blocks whose warps draw
// the weight straight into registers, each many loads at once, while x stands in shared memory.
//
// Data's way: codes, scales and zero points of groups from global memory into registers, in the order of the
// tensor cores' left operand (packed_panel.cuh); a warp has `unroll` panels of 64 columns under way, and asks
// for the next where it has just multiplied one. The first before anything else, also before the wait for the
// kernel that writes x. x by asynchronous copies into shared memory, from there by ldmatrix. Codes less their
// zero points -> mma.sync, whose 8 tokens are zeros where there are none; sums of a group are scaled in
// float32 when it ends. The warps' sums meet in shared memory and are added in order.
//
// Two barriers of the block: when x is there, and when sums are.
#include "device/level_2.cuh"
#include "device/mma.cuh"
#include "device/reduce.cuh"
#include "device/shared_tile.cuh"
#include "device/sync.cuh"
#include "quantized_linear/packed_panel.cuh"
#include "quantized_linear/stream/geometry.cuh"

namespace hone::quantized_linear::stream {

static_assert(is_packed, "codes in the order of the tensor cores' left operand");
static_assert(in % 16 == 0, "rows of x are whole chunks of 16 bytes");
static_assert(Tuned::tokens <= 8, "one block of columns of an instruction");

/// A norm is part of the product.
inline constexpr bool folds_norm = has_norm && is_bf16<Element>;
inline constexpr StreamGeometry geometry{.products = products,
                                         .in = in,
                                         .tokens = Tuned::tokens,
                                         .rows = Tuned::rows,
                                         .k_warps = Tuned::k_warps,
                                         .row_warps = Tuned::row_warps,
                                         .unroll = Tuned::unroll,
                                         .norm = folds_norm};
inline constexpr int fragments = geometry.rows / 16;
inline constexpr int unroll = geometry.unroll;
/// Every warp has panels in every turn.
inline constexpr bool whole_turns = panels % geometry.turn() == 0;

using Panel = PackedPanel<Element>;
using Weights = Panel[products][fragments];
using Sums = MmaSums[products][fragments];

/// Rows of the weights that a warp multiplies, and its panels.
class Warp {
  public:
    __device__ explicit Warp(const Tensors& tensors)
        : k(threadIdx.x / 32 % geometry.k_warps), group(threadIdx.x / 32 / geometry.k_warps) {
        const int row = static_cast<int>(blockIdx.x) * geometry.block_rows() + group * geometry.rows;
#pragma unroll
        for (int product = 0; product < products; ++product) {
#pragma unroll
            for (int f = 0; f < fragments; ++f)
                rows_[product][f] = Panel::Rows(tensors.weight_of(product), row + 16 * f);
        }
    }

    /// The warp's u-th panel of a turn.
    __device__ int panel(int turn, int u) const { return turn * geometry.turn() + k * unroll + u; }
    __device__ static bool exists(int panel) { return whole_turns || panel < panels; }

    /// In place of a panel that is none the last again: without branches all loads of a turn are under way
    /// together.
    __device__ void load(int panel, Weights& to) const {
        const int index = whole_turns ? panel : min(panel, panels - 1);
#pragma unroll
        for (int product = 0; product < products; ++product) {
#pragma unroll
            for (int f = 0; f < fragments; ++f) Panel::load(rows_[product][f], index, to[product][f]);
        }
    }

    const int k;
    const int group;

  private:
    Panel::Rows rows_[products][fragments];
};

/// Begins the copies; columns behind the last become zeros, tokens that are none repeat the last.
__device__ inline void copy_x(const Tensors& tensors, uint32 shared) {
    constexpr int chunks = panels * block_columns / 8;
    const Element* const x = tensors.x;
    for (int i = threadIdx.x; i < geometry.tokens * chunks; i += geometry.threads()) {
        const int token = i / chunks;
        const int column = i % chunks * 8;
        const Element* const row = x + min(token, static_cast<int>(tensors.tokens) - 1) * tensors.x_stride;
        copy_chunk_async_or_zero(shared + token * geometry.x_pitch() + column * 2,
                                 row + (column < in ? column : 0), column < in);
    }
    if (threadIdx.x == 0) store_shared(shared + geometry.zeros_at(), uint4{0, 0, 0, 0});
    commit_copies();
}

/// Level 2 is asked for the norm's weight, which nothing writes: it may stand in front of the wait for x.
__device__ inline void ask_for_norm_weight(const Tensors& tensors) {
    constexpr int line = 128 / sizeof(Element);
    for (int column = threadIdx.x * line; column < in; column += geometry.threads() * line)
        prefetch_level_2(tensors.norm_weight + column);
}

__device__ inline float* squares_of(unsigned char* memory, int token) {
    return reinterpret_cast<float*>(memory + geometry.squares_at()) + token * geometry.warps();
}

/// As copy_x, times the norm's weight; the squares of x are stored as sums of each warp.
__device__ inline void fold_norm(const Tensors& tensors, unsigned char* memory) {
    constexpr int chunks = panels * block_columns / 8;
    const uint32 shared = shared_address(memory);
    const auto* const x = reinterpret_cast<const Element*>(tensors.x);
#pragma unroll 1
    for (int token = 0; token < geometry.tokens; ++token) {
        const Element* const row = x + min(token, static_cast<int>(tensors.tokens) - 1) * tensors.x_stride;
        float squares = 0.0f;
#pragma unroll 2
        for (int i = threadIdx.x; i < chunks; i += geometry.threads()) {
            const int column = i * 8;
            uint4 words{0, 0, 0, 0};
            if (column < in) {
                float values[8], weights[8];
                unpack(load_packet<Element, 8>(row + column), values);
                unpack(load_packet<Element, 8>(tensors.norm_weight + column), weights);
#pragma unroll
                for (int k = 0; k < 8; ++k) {
                    squares = fmaf(values[k], values[k], squares);
                    values[k] *= weights[k];
                }
                const Packet<Element, 8> products_of_both = pack<Element>(values);
                memcpy(&words, &products_of_both, 16);
            }
            store_shared(shared + token * geometry.x_pitch() + column * 2, words);
        }
        squares = reduce_lanes<Sum, 32>(squares);
        if (threadIdx.x % 32 == 0) squares_of(memory, token)[threadIdx.x / 32] = squares;
    }
    if (threadIdx.x == 0) store_shared(shared + geometry.zeros_at(), uint4{0, 0, 0, 0});
}

/// What a lane names for ldmatrix: row l % 8 of 8 x 8 matrix l / 8, which has columns 8 (l / 8) on of 32.
class X {
  public:
    __device__ explicit X(uint32 shared) : zeros_(shared + geometry.zeros_at()) {
        const int lane = threadIdx.x % 32;
        exists_ = lane % 8 < geometry.tokens;
        at_ = shared + lane % 8 * geometry.x_pitch() + lane / 8 * 16;
    }
    /// Half of a panel, 32 columns: b0 and b1 of one product of 16, and of the next.
    __device__ void load(uint32 (&words)[4], int panel, int half) const {
        const uint32 place = at_ + panel * (block_columns * 2) + half * 64;
        load_matrices(words, exists_ && Warp::exists(panel) ? place : zeros_);
    }

  private:
    uint32 zeros_;
    uint32 at_;
    bool exists_;
};

__device__ inline void multiply_half(const X& x, int panel, int half, const Weights& weights, Sums& to) {
    uint32 words[4];
    x.load(words, panel, half);
#pragma unroll
    for (int product = 0; product < products; ++product) {
#pragma unroll
        for (int f = 0; f < fragments; ++f) {
#pragma unroll
            for (int step = 0; step < 2; ++step) {
                uint32 a[4];
#pragma unroll
                for (int i = 0; i < 4; ++i) a[i] = weights[product][f].codes(2 * half + step, i);
                multiply_16<Element>(to[product][f], a[0], a[1], a[2], a[3], words[2 * step],
                                     words[2 * step + 1]);
            }
        }
    }
}

/// Sums of a group, which step `step` of the panel belongs to; they begin anew.
__device__ inline void add_scaled(const Weights& weights, int step, Sums& parts, Sums& sums) {
#pragma unroll
    for (int product = 0; product < products; ++product) {
#pragma unroll
        for (int f = 0; f < fragments; ++f) {
            float scales[2];
            weights[product][f].scales(step, scales);
            MmaSums& part = parts[product][f];
            MmaSums& sum = sums[product][f];
#pragma unroll
            for (int i = 0; i < 4; ++i) sum.values[i] = fmaf(part.values[i], scales[i / 2], sum.values[i]);
            part = {};
        }
    }
}

__device__ inline void multiply(const X& x, int panel, const Weights& weights, Sums& sums) {
    if constexpr (!Panel::has_groups) {
        multiply_half(x, panel, 0, weights, sums);
        multiply_half(x, panel, 1, weights, sums);
    } else {
        Sums parts = {};
        multiply_half(x, panel, 0, weights, parts);
        if constexpr (Panel::sets > 1) add_scaled(weights, 0, parts, sums);
        multiply_half(x, panel, 1, weights, parts);
        add_scaled(weights, 2, parts, sums);
    }
}

__device__ inline int partial_place(int k_warp, int product, int token, int row) {
    return ((k_warp * products + product) * geometry.tokens + token) * geometry.partial_pitch() + row;
}

__device__ inline void put(float* partials, const Warp& warp, const Sums& sums) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int product = 0; product < products; ++product) {
#pragma unroll
        for (int f = 0; f < fragments; ++f) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int row = warp.group * geometry.rows + f * 16 + lane / 4 + i / 2 * 8;
                const int token = lane % 4 * 2 + i % 2;
                if (token < geometry.tokens)
                    partials[partial_place(warp.k, product, token, row)] = sums[product][f].values[i];
            }
        }
    }
}

/// What is added to results: of a thread's first one it is asked for before its sums are there.
class Added {
  public:
    __device__ explicit Added(const Tensors& tensors) : tensors_(tensors) {
        if constexpr (!has_residual) return;
        const int64 row = static_cast<int64>(blockIdx.x) * rows + threadIdx.x % rows;
        const int token = threadIdx.x / rows;
        if (row < out && token < tensors.tokens) first_ = tensors.residual_of(token, static_cast<int>(row));
    }
    __device__ float operator()(int number, int token, int64 row) const {
        return number == threadIdx.x ? first_ : tensors_.residual_of(token, static_cast<int>(row));
    }
    static constexpr int rows = geometry.block_rows();

  private:
    const Tensors& tensors_;
    float first_ = 0.0f;
};

/// Adds the warps' sums in order and writes the results.
__device__ inline void join(const Tensors& tensors, unsigned char* memory, const Added& added) {
    constexpr int rows = geometry.block_rows();
    const auto* const partials = reinterpret_cast<const float*>(memory + geometry.partials_at());
    for (int i = threadIdx.x; i < rows * geometry.tokens; i += geometry.threads()) {
        const int64 row = static_cast<int64>(blockIdx.x) * rows + i % rows;
        const int token = i / rows;
        if (row >= out || token >= tensors.tokens) continue;
        float factor = 1.0f;
        if constexpr (folds_norm)
            factor = tensors.norm_factor(combine_partials<Sum, geometry.warps()>(squares_of(memory, token)));
        float sums[products] = {};
#pragma unroll
        for (int product = 0; product < products; ++product) {
#pragma unroll
            for (int k_warp = 0; k_warp < geometry.k_warps; ++k_warp)
                sums[product] += partials[partial_place(k_warp, product, token, i % rows)];
            sums[product] *= sum_factor(tensors.weight_of(product), row);
            if constexpr (folds_norm) sums[product] *= factor;
        }
        tensors.out[token * tensors.out_stride + row] =
            from_float<Element>(tensors.finish(static_cast<int>(row), sums, added(i, token, row)));
    }
}

__device__ inline void run(const Tensors& tensors, unsigned char* memory) {
    if constexpr (Tuned::programmatic != 0) release_successor();
    const Warp warp(tensors);
    Weights held[unroll];
#pragma unroll
    for (int u = 0; u < unroll; ++u) warp.load(warp.panel(0, u), held[u]);
    if constexpr (folds_norm) ask_for_norm_weight(tensors);
    if constexpr (Tuned::programmatic != 0) wait_for_predecessor();
    const uint32 shared = shared_address(memory);
    if constexpr (folds_norm) {
        fold_norm(tensors, memory);
    } else {
        copy_x(tensors, shared);
        wait_for_copies<0>();
    }
    const Added added(tensors);
    __syncthreads();

    const X x(shared);
    Sums sums = {};
#pragma unroll 1
    for (int turn = 0; turn + 1 < geometry.turns(); ++turn) {
#pragma unroll
        for (int u = 0; u < unroll; ++u) {
            multiply(x, warp.panel(turn, u), held[u], sums);
            warp.load(warp.panel(turn + 1, u), held[u]);
        }
    }
#pragma unroll
    for (int u = 0; u < unroll; ++u) multiply(x, warp.panel(geometry.turns() - 1, u), held[u], sums);
    float* const partials = reinterpret_cast<float*>(memory + geometry.partials_at());
    put(partials, warp, sums);
    __syncthreads();
    join(tensors, memory, added);
}

}  // namespace hone::quantized_linear::stream

extern "C" __global__ void __launch_bounds__(hone::quantized_linear::stream::geometry.threads(),
                                             Tuned::blocks_per_sm)
    quantized_linear_stream(HONE_PARAMETERS(quantized_linear_stream)) {
    const hone::quantized_linear::Tensors tensors{HONE_ARGUMENTS(quantized_linear_stream)};
    extern __shared__ __align__(128) unsigned char memory[];
    hone::quantized_linear::stream::run(tensors, memory);
}

namespace hone::linear::normalize {
inline constexpr int vector = 8;
}

#include "linear/normalize.cuh"
