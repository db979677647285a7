// Sizes that the plan and the kernels both need: which tokens a block, a warp and a lane own, and what lies
// in shared memory. Plain C++.
//
// A row is cut into as many pieces as blocks share it, a piece into one for each warp: neighbours in the row
// are neighbours in rank, so that sums over blocks, warps and lanes follow the order of the tokens. A warp
// goes through its piece in steps of 32 packets.
#pragma once

#include "sample/values.cuh"

namespace hone::sample {

struct Geometry {
    long long vocabulary;
    int blocks;  ///< that share a row
    int threads;
    int vector;  ///< elements a packet

    [[nodiscard]] constexpr int warps() const { return threads / 32; }
    [[nodiscard]] constexpr int step_tokens() const { return 32 * vector; }
    [[nodiscard]] constexpr int steps() const {
        const long long all = static_cast<long long>(blocks) * warps() * step_tokens();
        return static_cast<int>((vocabulary + all - 1) / all);
    }
    [[nodiscard]] constexpr int warp_tokens() const { return steps() * step_tokens(); }
    [[nodiscard]] constexpr int block_tokens() const { return warps() * warp_tokens(); }
    /// Parts of `count` that a block's tokens are cut into.
    [[nodiscard]] constexpr int part_tokens(int count) const { return block_tokens() / count; }
};

/// Histograms: the first; the second for top-k and for top-p, in one place where shared memory is short.
constexpr int search_stages(bool is_short) { return is_short ? 2 : 3; }
inline constexpr int most_parts = 4;  ///< parts of a block that counts values
inline constexpr int searches = 4;    ///< each of two thresholds in two histograms

/// Bytes of Scratch (scratch.cuh), a multiple of 16.
constexpr int scratch_bytes(int blocks, int warps, bool filters, bool is_short) {
    const int exchange = 8 * blocks + 8 * warps + 16 * blocks + 16 * warps;
    const int stages = search_stages(is_short);
    const int search =
        (stages + 1) * 2048 * 4 + 32 * 4 + stages * (blocks + 1) * 32 * 16 + searches * 2 * 64 * 4;
    const int parts = is_short ? most_parts * 32 * 8 : 0;
    return (exchange + parts + (filters ? search : 0) + 15) / 16 * 16;
}

/// Shared memory that a block may take so that 1024 threads fill a multiprocessor.
constexpr int shared_budget(int threads) {
    const int share = 228 * 1024 / (1024 / threads);
    return share - 1024;
}

/// Parts of a block's bf16 logits that are counted by value, each in slots of its own, so that the drawn
/// token is looked for in one part alone: up to four, as memory, steps and warps allow.
constexpr int value_parts(const Geometry& cut, bool filters) {
    int parts = 4;
    const auto fits = [&] {
        return 4 * value_slots * parts + 2 * cut.block_tokens() +
                   scratch_bytes(cut.blocks, cut.warps(), filters, true) <=
               shared_budget(cut.threads);
    };
    while (parts > 1 && (cut.steps() % parts != 0 || cut.warps() < 8 * parts || !fits())) parts /= 2;
    return parts;
}

}  // namespace hone::sample
