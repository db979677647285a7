// What variant drawn needs beside wgmma's ring. Plain C++ that plans and kernels include alike.
#pragma once

namespace hone::expert_linear::drawn {

/// Bytes of shared memory behind the ring's barriers: two numbers of tiles, each with two barriers.
inline constexpr int number_bytes = 2 * (4 + 2 * 8);
/// Bytes of the workspace behind all else: the word that counts drawn tiles.
inline constexpr int deal_bytes = 8;
/// Bits of that word that count: calls have fewer tiles.
inline constexpr int count_bits = 28;

}  // namespace hone::expert_linear::drawn
