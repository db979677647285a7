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

/// `row`: the lane's first row of the sequence.
__device__ inline void store_rows(const Call& call, const Tile& tile, int row, const Sums& sums,
                                  const float (&inverse)[2], const float (&lse)[2]) {
    const int lane = threadIdx.x % 4;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const int query = row + 8 * half;
        const bool inside = query < tile.sequence.q_len;
        Element* const out = call.result(tile.sequence, tile.head(), query);
#pragma unroll
        for (int chunk = 0; chunk < head_dim / 8; chunk += 4) {
            uint32 words[4] = {};
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int at = 4 * (chunk + i) + 2 * half;
                if (chunk + i < head_dim / 8)
                    words[i] = pack_pair(Element{}, sums[at] * inverse[half], sums[at + 1] * inverse[half]);
            }
            const uint4 row_chunk = transpose_quad(words);
            if (inside && (chunk + 4 <= head_dim / 8 || chunk + lane < head_dim / 8))
                *reinterpret_cast<uint4*>(out + (chunk + lane) * 8) = row_chunk;
        }
        if (has_lse && lane == 0 && inside) *call.lse_of(tile.sequence, tile.head(), query) = lse[half];
    }
}

}  // namespace hone::attention_prefill::warpgroup
