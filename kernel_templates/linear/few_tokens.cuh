// Products for few tokens, the part that the variants gemv, mma and strips share: a group of `k_warps` warps
// takes some rows of the weight and splits `in` between them; their sums meet in shared memory and are added
// in order. A block holds `row_warps` such groups and up to `block_tokens` tokens; it walks over the weight
// with the grid's step, or takes one step only. More tokens are more blocks, those of the same weights side
// by side, so that the weights come from level 2.
//
// Data's way: weights come from global memory straight into registers, 16 bytes an access (gemv and mma fewer
// where rows do not begin at multiples of them), one batch ahead of the one being multiplied, also across
// steps; the first batch before anything else, also before the wait for the kernel that writes x. x comes
// through level 1, where it stays (weights do not allocate there). One barrier a step, between writing and
// adding the partial sums, which alternate between two buffers.
//
// A norm may be folded into the products: a lane, which sees every column of x that its warp multiplies, adds
// up the squares on the way and multiplies x with the norm's weight; the results are multiplied with
// 1 / sqrt(mean(x^2) + epsilon), for which the warps' squares meet as their sums do. Behind a norm that is
// shared (shared_norm.cuh) the squares come from memory: a lane asks for its part of their slots before it
// multiplies.
#pragma once

#include "device/packet.cuh"
#include "device/sync.cuh"
#include "device/tma.cuh"
#include "linear/shared_norm.cuh"
#include "linear/tensors.cuh"

namespace hone::linear {

inline constexpr int k_warps = Tuned::k_warps;
inline constexpr int row_warps = Tuned::row_warps;
inline constexpr int threads = 32 * k_warps * row_warps;
inline constexpr int unroll = Tuned::unroll;
/// Tokens of one block.
inline constexpr int block_tokens = Tuned::tokens;
/// Blocks take many steps, or one each.
inline constexpr bool walks = Tuned::blocks_per_sm != 0;
/// Whether the norm is part of the products: else x comes normalized.
inline constexpr bool folds_norm = has_norm && Tuned::fold_norm != 0;
/// Whether sums are multiplied with what follows from a token's squares.
__device__ constexpr bool takes_factors() { return folds_norm || takes_squares(); }
/// Elements that a lane multiplies together: 16 bytes.
inline constexpr int vector = 16 / sizeof(Element);
/// Elements of one access: all of them where rows begin at multiples of 16 bytes, else the most that they
/// begin at multiples of.
__device__ constexpr int access() { return (in & -in) < vector ? in & -in : vector; }

#define HONE_LOAD_WEIGHT(hints, ...) \
    asm volatile("ld.global.nc" hints ".v4.u32 {%0, %1, %2, %3}, [%4]" __VA_ARGS__)

/// 16 bytes of a weight, which nothing writes while the kernel runs. load_hint: 1 not into level 1, 2 the
/// same and 256 bytes into level 2, 3 not into level 1 and first to leave level 2.
__device__ inline uint4 load_weight(const Element* address) {
    uint4 word;
    if constexpr (Tuned::load_hint == 1) {
        HONE_LOAD_WEIGHT(".L1::no_allocate", ";"
                         : "=r"(word.x), "=r"(word.y), "=r"(word.z), "=r"(word.w)
                         : "l"(address));
    } else if constexpr (Tuned::load_hint == 2) {
        HONE_LOAD_WEIGHT(".L1::no_allocate.L2::256B", ";"
                         : "=r"(word.x), "=r"(word.y), "=r"(word.z), "=r"(word.w)
                         : "l"(address));
    } else {
        HONE_LOAD_WEIGHT(".L1::no_allocate.L2::cache_hint", ", %5;"
                         : "=r"(word.x), "=r"(word.y), "=r"(word.z), "=r"(word.w)
                         : "l"(address), "l"(l2_policy<L2Hint::evict_first>()));
    }
    return word;
}
#undef HONE_LOAD_WEIGHT

/// Where a weight load may go: past the end of a row x is zero, so any readable weight does. Narrow accesses
/// look for themselves.
__device__ inline int readable(int column) { return access() < vector || column < in ? column : 0; }
/// As many elements of a row as 16 bytes have, by narrow accesses, zeros past its end: in place of those from
/// `column` on some that the `sharers` lanes which read the row together have side by side.
template <int sharers>
__device__ inline uint4 load_narrow(const Element* row, int column) {
    const int first = column - static_cast<int>(threadIdx.x) % sharers * (vector - access());
    Packet<Element, vector> all{};
#pragma unroll
    for (int i = 0; i < vector; i += access()) {
        const int from = first + i * sharers;
        if (from >= in) continue;
        const auto some = load_packet<Element, access()>(row + from);
        memcpy(&all.elements[i], &some, sizeof(some));
    }
    uint4 word;
    memcpy(&word, &all, 16);
    return word;
}

__device__ inline void unpack_word(const uint4& word, float (&values)[vector]) {
    Packet<Element, vector> packet;
    memcpy(&packet, &word, 16);
    unpack(packet, values);
}

/// x * norm_weight in x, and x^2 added to `squares`.
__device__ inline void fold_norm(float (&x)[vector], const float (&norm_weight)[vector], float& squares) {
#pragma unroll
    for (int i = 0; i < vector; ++i) {
        squares = fmaf(x[i], x[i], squares);
        x[i] *= norm_weight[i];
    }
}

/// What a block works on.
class FewTokens {
  public:
    __device__ explicit FewTokens(const Tensors& tensors) : tensors_(tensors) {
        first_step = blockIdx.x;
        step_stride = gridDim.x;
        if (tensors.tokens <= block_tokens) return;
        const uint32 groups = (static_cast<uint32>(tensors.tokens) + block_tokens - 1) / block_tokens;
        first_token_ = blockIdx.x % groups * block_tokens;
        first_step = blockIdx.x / groups;
        step_stride = gridDim.x / groups;
    }

    /// x[first token + token][column ... ], zeros past the end of the row; tokens that are none repeat the
    /// last. `sharers`: lanes that read the row together, as those of a weight.
    template <int sharers>
    __device__ uint4 load_x(int token, int column) const {
        if (access() == vector && column >= in) return uint4{0, 0, 0, 0};
        const int64 row = min(first_token_ + token, tensors_.tokens - 1);
        if constexpr (access() < vector)
            return load_narrow<sharers>(tensors_.x + row * tensors_.x_stride, column);
        return load_word<LoadHint::normal, 16>(tensors_.x + row * tensors_.x_stride + column);
    }
    /// norm_weight[column ...]; any values past its end, where x is zero.
    template <int sharers>
    __device__ void load_norm_weight(int column, float (&values)[vector]) const {
        if constexpr (access() < vector)
            return unpack_word(load_narrow<sharers>(tensors_.norm_weight, column), values);
        unpack_word(load_word<LoadHint::normal, 16>(tensors_.norm_weight + readable(column)), values);
    }
    /// The same of row `row` of the `product`-th weight, from a readable column on.
    template <int sharers>
    __device__ uint4 load_weight(int product, int row, int column) const {
        if constexpr (access() < vector) return load_narrow<sharers>(weight_at(product, row, 0), column);
        return linear::load_weight(weight_at(product, row, column));
    }
    __device__ float norm_factor(float squares) const {
        return rsqrtf(squares * (1.0f / in) + tensors_.epsilon);
    }
    /// Behind a norm that is shared: the part of a token's squares that this lane has of a group of warps.
    template <class AnyTensors = Tensors>
    __device__ float lane_squares(int token, int k_warp) const {
        const AnyTensors& tensors = tensors_;
        return linear::lane_squares<32 * k_warps>(tensors, first_token_ + token,
                                                  k_warp * 32 + static_cast<int>(threadIdx.x) % 32);
    }
    /// Row `row`, column `column` of the `product`-th weight.
    __device__ const Element* weight_at(int product, int row, int column) const {
        return product == 0 ? tensors_.weight + row * tensors_.weight_stride + column
                            : tensors_.up + row * tensors_.up_stride + column;
    }
    __device__ void store(int token, int column, const float (&sums)[products]) const {
        const int64 place = first_token_ + token;
        if (place >= tensors_.tokens) return;
        tensors_.out[place * tensors_.out_stride + column] =
            from_float<Element>(tensors_.finish(place, column, sums));
    }

    int first_step;
    int step_stride;

  private:
    const Tensors tensors_;
    int64 first_token_ = 0;
};

/// Rows of a group in a step. The last group moves back to whole rows; what it then computes a second time
/// it does not write.
template <int rows>
struct Rows {
    __device__ Rows(int step, int group) : wanted((step * row_warps + group) * rows) {
        first = min(wanted, out - rows);
    }
    int wanted;
    int first;
};

/// Sums of `rows` rows and `block_tokens` tokens of every warp. A row's pitch is 4 more than a multiple of 16
/// words: fragments of 8 rows x 4 pairs of tokens then fall into distinct banks.
template <int rows>
struct Partials {
    float sums[walks ? 2 : 1][row_warps][k_warps][products][block_tokens][rows + 4];

    /// The sum of a token's squares, behind its sums of the first product.
    __device__ float& squares(int buffer, int group, int k_warp, int token) {
        return sums[buffer][group][k_warp][0][token][rows];
    }
};

/// What a token's sums have to be multiplied with.
template <int rows>
__device__ inline float norm_factor(Partials<rows>& partials, const FewTokens& call, int buffer, int group,
                                    int token) {
    float squares = 0.0f;
#pragma unroll
    for (int warp = 0; warp < k_warps; ++warp) squares += partials.squares(buffer, group, warp, token);
    return call.norm_factor(squares);
}

/// Lanes' parts of tokens' squares; nothing where no norm is part of the products.
struct LaneSquares {
    float tokens[block_tokens] = {};

    /// Asks for those of a norm that is shared.
    template <class Call>
    __device__ void load(const Call& call, int k_warp) {
        if constexpr (takes_squares()) {
#pragma unroll
            for (int token = 0; token < block_tokens; ++token)
                tokens[token] = call.lane_squares(token, k_warp);
        }
    }
    /// Leaves a warp's sums for the group; those that are added up on the way begin anew.
    template <int rows>
    __device__ void leave(Partials<rows>& partials, int buffer, int group, int k_warp) {
#pragma unroll
        for (int token = 0; token < block_tokens; ++token) {
            const float sum = reduce_lanes<Sum, 32>(tokens[token]);
            if constexpr (!takes_squares()) tokens[token] = 0.0f;
            if (threadIdx.x % 32 == 0) partials.squares(buffer, group, k_warp, token) = sum;
        }
    }
};

/// Adds the partial sums of a group's rows and writes the results.
template <int rows>
__device__ inline void add_and_store(Partials<rows>& partials, const FewTokens& call, int buffer, int group,
                                     int k_warp, const Rows<rows>& place) {
    __syncthreads();
    for (int i = k_warp * 32 + threadIdx.x % 32; i < rows * block_tokens; i += 32 * k_warps) {
        const int token = i / rows;
        const int row = i % rows;
        float sums[products] = {};
#pragma unroll
        for (int product = 0; product < products; ++product) {
#pragma unroll
            for (int warp = 0; warp < k_warps; ++warp)
                sums[product] += partials.sums[buffer][group][warp][product][token][row];
        }
        if constexpr (takes_factors()) {
            const float factor = norm_factor(partials, call, buffer, group, token);
#pragma unroll
            for (int product = 0; product < products; ++product) sums[product] *= factor;
        }
        if (place.first + row >= place.wanted) call.store(token, place.first + row, sums);
    }
}

/// Walks over steps; load(rows, batch, held) and multiply(batch, held) handle batches of weights,
/// finish(rows, buffer) a step's sums. begin() is called when what the kernel before writes is there. Not
/// unrolled: in straight code the assembler moves loads down to their uses, and fewer are in flight.
template <int rows, int batches, class Held, class Load, class Begin, class Multiply, class Finish>
__device__ inline void stream(const FewTokens& call, int group, Load load, Begin begin, Multiply multiply,
                              Finish finish) {
    constexpr int steps = (out + rows * row_warps - 1) / (rows * row_warps);
    Rows<rows> current_rows(call.first_step, group);
    Held held;
    load(current_rows, 0, held);
    if constexpr (Tuned::programmatic != 0) wait_for_predecessor();
    begin();
    int buffer = 0;
    for (int step = call.first_step; step < steps; step += call.step_stride) {
        const int next = walks ? step + call.step_stride : steps;
        const Rows<rows> next_rows(next, group);
#pragma unroll 1
        for (int batch = 0; batch < batches; ++batch) {
            const Held current = held;
            if (batch + 1 < batches) {
                load(current_rows, batch + 1, held);
            } else if (next < steps) {
                load(next_rows, 0, held);
            }
            multiply(batch, current);
        }
        finish(current_rows, buffer);
        if constexpr (!walks) return;
        buffer ^= 1;
        current_rows = next_rows;
    }
}

}  // namespace hone::linear
