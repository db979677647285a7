// How a warpgroup of variant wgmma (kernel.cu) brings its sums to memory: rounded, exchanged within each quad
// so that a lane holds 16 bytes of a row, and stored directly. Rows past the sequence's last query are not
// written.
#pragma once

#include "attention_prefill/wgmma/softmax.cuh"

namespace hone::attention_prefill::warpgroup {

/// A thread's sums, in the accumulators' map (device/wgmma.cuh).
using Sums = float[head_dim / 2];

/// Transposes 4 x 4 words in a quad: word i of lane t becomes word t of lane i.
__device__ inline uint4 transpose_quad(const uint32 (&words)[4]) {
    const int lane = threadIdx.x % 4;
    const bool upper = lane & 2;
    const bool odd = lane & 1;
    // Lanes 0 and 1 keep words 0 and 1, lanes 2 and 3 words 2 and 3; then even lanes the first of them.
    const uint32 kept[2] = {upper ? words[2] : words[0], upper ? words[3] : words[1]};
    const uint32 far[2] = {__shfl_xor_sync(0xffffffffu, upper ? words[0] : words[2], 2),
                           __shfl_xor_sync(0xffffffffu, upper ? words[1] : words[3], 2)};
    const uint32 own = odd ? kept[1] : kept[0];
    const uint32 own_far = odd ? far[1] : far[0];
    const uint32 near = __shfl_xor_sync(0xffffffffu, odd ? kept[0] : kept[1], 1);
    const uint32 near_far = __shfl_xor_sync(0xffffffffu, odd ? far[0] : far[1], 1);
    const uint32 pair[2] = {odd ? near : own, odd ? own : near};
    const uint32 pair_far[2] = {odd ? near_far : own_far, odd ? own_far : near_far};
    return upper ? uint4{pair_far[0], pair_far[1], pair[0], pair[1]}
                 : uint4{pair[0], pair[1], pair_far[0], pair_far[1]};
}

/// Half of a thread's rows at a time where all of what it exchanges would not stay in registers.
inline constexpr int rows_at_once = head_dim <= 128 ? 2 : 1;

/// The thread's rows [first, first + count), `row` the first of all. What is exchanged stands in front of all
/// branches, else exchanges would follow one another.
template <int first, int count>
__device__ inline void store_some_rows(const Call& call, const Tile& tile, int row, const Sums& sums,
                                       const float (&inverse)[2], const float (&lse)[2]) {
    constexpr int groups = (head_dim / 8 + 3) / 4;
    const int lane = threadIdx.x % 4;
    uint4 chunks[count][groups];
#pragma unroll
    for (int half = 0; half < count; ++half) {
#pragma unroll
        for (int group = 0; group < groups; ++group) {
            uint32 words[4] = {};
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int at = 4 * (4 * group + i) + 2 * (first + half);
                if (4 * group + i < head_dim / 8)
                    words[i] = pack_pair(Element{}, sums[at] * inverse[first + half],
                                         sums[at + 1] * inverse[first + half]);
            }
            chunks[half][group] = transpose_quad(words);
        }
    }
#pragma unroll
    for (int half = 0; half < count; ++half) {
        const int query = row + 8 * (first + half);
        if (query >= tile.sequence.q_len) continue;
        Element* const out = call.result(tile.sequence, tile.head(), query) + lane * 8;
#pragma unroll
        for (int group = 0; group < groups; ++group)
            if (4 * group + 4 <= head_dim / 8 || 4 * group + lane < head_dim / 8)
                *reinterpret_cast<uint4*>(out + group * 32) = chunks[half][group];
        if (has_lse && lane == 0) *call.lse_of(tile.sequence, tile.head(), query) = lse[first + half];
    }
}

/// `row`: the lane's first row of the sequence.
__device__ inline void store_rows(const Call& call, const Tile& tile, int row, const Sums& sums,
                                  const float (&inverse)[2], const float (&lse)[2]) {
    store_some_rows<0, rows_at_once>(call, tile, row, sums, inverse, lse);
    if constexpr (rows_at_once == 1) store_some_rows<1, 1>(call, tile, row, sums, inverse, lse);
}

}  // namespace hone::attention_prefill::warpgroup
