// Sizes that the plan and the kernels both need: which tokens a block, a warp and a lane own, and what lies
// in shared memory. Plain C++.
//
// A row is cut into as many pieces as blocks share it, a piece into one for each warp: neighbours in the row
// are neighbours in rank, so that sums over blocks, warps and lanes follow the order of the tokens. A warp
// goes through its piece in steps of 32 packets.
#pragma once

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
};

/// Histograms: the first; the second for top-k and for top-p, in one place where shared memory is short.
constexpr int search_stages(bool is_short) { return is_short ? 2 : 3; }
inline constexpr int searches = 4;  ///< each of two thresholds in two histograms

/// Bytes of Scratch (scratch.cuh), a multiple of 16.
constexpr int scratch_bytes(int blocks, int warps, bool filters, bool is_short) {
    const int exchange = 8 * blocks + 8 * warps + 16 * blocks + 16 * warps;
    const int stages = search_stages(is_short);
    const int search =
        (stages + 1) * 2048 * 4 + 32 * 4 + stages * (blocks + 1) * 32 * 16 + searches * 2 * 64 * 4;
    return (exchange + (filters ? search : 0) + 15) / 16 * 16;
}

}  // namespace hone::sample
