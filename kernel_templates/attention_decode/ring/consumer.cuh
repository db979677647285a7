// The compute warps of variant ring (kernel.cu). With g = lane / 4 and t = lane % 4, operands as in
// device/mma.cuh; which column of a head is which of an instruction does not matter to a sum as long as both
// operands agree:
//   16-bit  column 8 e + 2 t + i of each 16 is k 8 e + 2 t + i; of V, columns g and g + 8 are rows g, g + 8
//   fp8     column 4 t + 2 e + i of each 16 is k 8 e + 2 t + i: what one word of ldmatrix holds; of V,
//           columns 2 g and 2 g + 1 are rows g and g + 8: what one word holds of two tokens
#pragma once

#include "attention_decode/ring/ring.cuh"
#include "device/hand_back.cuh"
#include "device/widen_fp8.cuh"

namespace hone::attention_decode::ring {

/// Right operands of K q^T, of row g.
struct Query {
    uint32 words[row_blocks][column_blocks][2];
    float factor;  ///< of scores (convert_queries)

    template <class Newest>
    __device__ void load(const Tensors& tensors, const Fragment& fragment, const Newest& newest) {
        const int t = threadIdx.x % 4;
#pragma unroll
        for (int n = 0; n < row_blocks; ++n) {
            const Element* row = query_row(tensors, fragment, n);
#pragma unroll
            for (int i = 0; i < 2 * column_blocks; ++i) {
                const int column = fp8_cache ? i / 2 * 16 + 4 * t + i % 2 * 2 : 8 * i + 2 * t;
                const bool exists = row != nullptr && (fp8_cache || 8 * i < head_dim);
                words[n][i / 2][i % 2] = exists ? load_word<LoadHint::normal, 4>(row + column) : 0;
            }
        }
        newest.turn(words);
        factor = convert_queries(words);
    }
};

/// Left operands of 16 columns of 16 tokens.
struct Left {
    uint32 words[4];

    /// Left operands out of two words of codes, of tokens g and g + 8.
    __device__ static Left of_k(uint32 low, uint32 high) {
        return {widen_pair<Operand, 0, 1>(low), widen_pair<Operand, 0, 1>(high),
                widen_pair<Operand, 2, 3>(low), widen_pair<Operand, 2, 3>(high)};
    }
    /// Left operands out of two words of codes, of tokens 2t and 2t + 1, and of 2t + 8 and 2t + 9.
    __device__ static Left of_v(uint32 low, uint32 high) {
        const uint32 a = by_column(low), b = by_column(high);
        return {widen_pair<Operand, 0, 1>(a), widen_pair<Operand, 2, 3>(a), widen_pair<Operand, 0, 1>(b),
                widen_pair<Operand, 2, 3>(b)};
    }
    /// Two columns of two tokens, those of a column side by side.
    __device__ static uint32 by_column(uint32 codes) { return __byte_perm(codes, 0, 0x3120); }
    __device__ void multiply(MmaSums& sums, const uint32 (&right)[2]) const {
        multiply_16<Operand>(sums, words[0], words[1], words[2], words[3], right[0], right[1]);
    }
};

__device__ inline void score(Scores<token_blocks>& scores, uint32 operand, const Query& query) {
    const int lane = threadIdx.x % 32;
    const auto multiply = [&](const Left& k, int b, int step) {
#pragma unroll
        for (int n = 0; n < row_blocks; ++n) k.multiply(scores.sums[b][n], query.words[n][step]);
    };
    /// One ldmatrix reads two chunks.
    constexpr int steps = fp8_cache ? 2 : 1;
#pragma unroll
    for (int step = 0; step < column_blocks; step += steps) {
#pragma unroll
        for (int b = 0; b < token_blocks; ++b) {
            Left k;
            load_matrices(k.words,
                          operand + offset_in_operand(16 * b + lane % 16, 2 * step / steps + lane / 16));
            if constexpr (!fp8_cache) {
                multiply(k, b, step);
            } else {
                multiply(Left::of_k(k.words[0], k.words[1]), b, step);
                if (step + 1 < column_blocks) multiply(Left::of_k(k.words[2], k.words[3]), b, step + 1);
            }
        }
    }
}

/// The bits of those elements that are visible, in a word of two tokens' elements.
__device__ inline uint32 visible_bits(int token, const Visible& visible) {
    return (token >= visible.first && token < visible.last ? 0x0000ffffu : 0) |
           (token + 1 >= visible.first && token + 1 < visible.last ? 0xffff0000u : 0);
}

/// O^T += V^T P^T. Block i of the sums has columns 16 i to 16 i + 15.
__device__ inline void add(Sums<column_blocks>& sums, uint32 operand, const Weights<token_blocks>& weights,
                           int token, const Visible& visible) {
    const int lane = threadIdx.x % 32;
    const bool partly = (copy_engine || appends) && (token < visible.first || token + unit > visible.last);
    constexpr int steps = fp8_cache ? 2 : 1;
#pragma unroll
    for (int b = 0; b < token_blocks; ++b) {
        const int mine = token + 16 * b + lane % 4 * 2;
        const uint32 low = visible_bits(mine, visible);
        const uint32 high = visible_bits(mine + 8, visible);
        const auto multiply = [&](const Left& v, int block) {
#pragma unroll
            for (int n = 0; n < row_blocks; ++n) v.multiply(sums.blocks[n][block], weights.words[b][n]);
        };
#pragma unroll
        for (int i = 0; i < column_blocks; i += steps) {
            Left v;
            load_matrices_transposed(v.words, operand + offset_in_operand(16 * b + lane % 8 + lane / 16 * 8,
                                                                          2 * i / steps + lane / 8 % 2));
            if (partly) {
                v.words[0] &= low;
                v.words[1] &= low;
                v.words[2] &= high;
                v.words[3] &= high;
            }
            if constexpr (!fp8_cache) {
                multiply(v, i);
            } else {
                multiply(Left::of_v(v.words[0], v.words[2]), i);
                if (i + 1 < column_blocks) multiply(Left::of_v(v.words[1], v.words[3]), i + 1);
            }
        }
    }
}

/// Whatever V's loads brought is in these sums. Copies by threads come behind the loads by themselves
/// (device/hand_back.cuh).
__device__ inline void give_back(uint32 empty, const Sums<column_blocks>& sums) {
    if constexpr (copy_engine) {
        uint32 bits = 0;
#pragma unroll
        for (int i = 0; i < column_blocks; ++i) bits |= __float_as_uint(sums.blocks[0][i].values[3]);
        barrier_arrive_behind(empty, bits);
    } else {
        barrier_arrive(empty);
    }
}

__device__ inline void leave(Shared& shared, const Sums<column_blocks>& sums, const Softmax& softmax) {
    const int g = threadIdx.x % 32 / 4;
    leave_rows(shared, softmax, [&](int n, int e, float* row) {
#pragma unroll
        for (int i = 0; i < column_blocks; ++i) {
            const float(&values)[4] = sums.blocks[n][i].values;
            if constexpr (fp8_cache) {
                *reinterpret_cast<float2*>(row + 16 * i + 2 * g) = float2{values[e], values[2 + e]};
            } else {
                row[16 * i + g] = values[e];
                row[16 * i + 8 + g] = values[2 + e];
            }
        }
    });
}

/// Keys and values of all tokens are in the cache.
struct Stored {
    static constexpr bool arrives = false;

    __device__ explicit Stored(const Tensors&) {}
    __device__ void look_up(const Fragment&) {}
    __device__ void ask(const Fragment&) {}
    __device__ void arrive(const Fragment&) {}
    __device__ void turn(uint32 (&)[row_blocks][column_blocks][2]) const {}
    __device__ void put_key(unsigned char*, int) const {}
    __device__ void put_value(unsigned char*, int) const {}
};

template <class Newest>
__device__ inline void compute(const Tensors& tensors, Memory& memory) {
    const int warp = threadIdx.x / 32;
    Schedule schedule(tensors);
    if (join_way == Join::last_block && threadIdx.x == 0) memory.join.ended = schedule.ended();
    Fragment fragment = schedule.next();
    Newest newest(tensors);
    newest.look_up(fragment);
    if constexpr (Newest::arrives) {
        wait_for_predecessor();
        release_successor();
    }
    Query query;
    newest.ask(fragment);
    query.load(tensors, fragment, newest);
    newest.arrive(fragment);
    store_empty(tensors);
    Softmax softmax(tensors);
    Sums<column_blocks> sums;
    int number = 0;
    while (fragment.present) {
        softmax.start(fragment.list, query.factor);
        sums.clear();
        const int units = units_read(fragment);
        const Visible visible = tensors.visible(fragment.length);
#pragma unroll 1
        for (int index = warp; index < units; index += warps) {
            const Stage stage(number + index);
            const int token = fragment.first_token + index * unit;
            Scores<token_blocks> scores{};
            Weights<token_blocks> weights;
            barrier_wait(shared_address(&memory.full[0][stage.index]), stage.parity);
            newest.put_key(memory.ring[stage.index][0], token);
            score(scores, shared_address(memory.ring[stage.index][0]), query);
            if (softmax.step(scores, weights, token, fragment.length)) sums.shrink(softmax);
            barrier_wait(shared_address(&memory.full[1][stage.index]), stage.parity);
            newest.put_value(memory.ring[stage.index][1], token);
            add(sums, shared_address(memory.ring[stage.index][1]), weights, token, visible);
            __syncwarp();
            if (threadIdx.x % 32 == 0) give_back(shared_address(&memory.empty[stage.index]), sums);
        }
        number += units;
        softmax.finish();
        const Fragment done = fragment;
        fragment = schedule.next();
        if constexpr (!Newest::arrives) query.load(tensors, fragment, newest);
        leave(memory.join, sums, softmax);
        // Behind the sums, whose registers it takes; a cluster has but one fragment.
        if constexpr (Newest::arrives && cluster == 1) {
            newest.look_up(fragment);
            newest.ask(fragment);
            query.load(tensors, fragment, newest);
            newest.arrive(fragment);
        }
        if constexpr (cluster > 1) {
            cluster_wait();  // all inboxes are open
            join_cluster(tensors, memory.join, done);
        } else {
            join_block(tensors, memory.join, done);
        }
    }
    if constexpr (cluster == 1 && join_way == Join::last_block) join_ended(tensors, memory.join);
}

}  // namespace hone::attention_decode::ring
