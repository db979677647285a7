// Shared memory of a block besides the row: what blocks and warps tell each other, and the histograms.
#pragma once

#include "sample/tensors.cuh"

namespace hone::sample {

/// The mass that a draw goes over, and that of the logits as they are, where a log-probability is asked for.
struct Masses {
    uint64 kept;
    uint64 raw;
};

/// A token in a word of the first histogram; rests of 2^10 tokens stand below it.
inline constexpr uint32 packed_one = 1u << 22;

/// Zeros, by all threads.
template <int threads>
__device__ inline void fill(uint32* words, int count) {
    for (int i = static_cast<int>(threadIdx.x) * 4; i < count; i += threads * 4)
        *reinterpret_cast<uint4*>(words + i) = uint4{0, 0, 0, 0};
}

template <int blocks, int stages>
struct SearchScratch {
    uint32 words[stages][bins];  ///< counts; of the first histogram above the rests, where they fit
    uint32 rests[bins];
    uint32 seen[32];                       ///< tokens of each warp in the first histogram
    uint4 totals[stages][blocks][groups];  ///< count, offsets in the group, rests, tokens seen
    uint4 group_totals[stages][groups];
    uint32 sums[searches][2][group_bins];
};
struct NoSearch {};
/// What each warp has found to be kept of each part.
struct PartScratch {
    uint64 masses[most_parts][32];
};
struct NoParts {};

template <int blocks, int warps, bool is_short>
struct alignas(16) Scratch {
    static constexpr int stages = search_stages(is_short);
    [[no_unique_address]]
    typename Conditional<has_filters, SearchScratch<blocks, stages>, NoSearch>::type search;
    [[no_unique_address]] typename Conditional<is_short, PartScratch, NoParts>::type parts;
    Masses block_masses[blocks];
    Masses warp_masses[warps];
    uint64 block_best[blocks];
    uint64 warp_best[warps];

    /// Histograms and sums begin as zeros. By all threads; seen by them after the next barrier.
    template <int threads>
    __device__ void clear() {
        if constexpr (has_filters) {
            fill<threads>(&search.words[0][0], stages * bins);
            fill<threads>(search.rests, bins);
            fill<threads>(&search.sums[0][0][0], searches * 2 * group_bins);
        }
    }
};

}  // namespace hone::sample
