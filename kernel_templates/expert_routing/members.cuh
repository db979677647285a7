// Sizes of the sets in which a block keeps which of its pairs go to which expert (order.cuh): a bit for each
// pair, a row of words for each expert. Plain C++ that plans and kernels include alike.
#pragma once

namespace hone::expert_routing {

/// Words of an expert's row, and of what lies between one row and the next: an odd number, so that
/// neighbouring experts' words are in distinct banks.
[[nodiscard]] constexpr int member_words(int pairs) { return pairs / 32; }
[[nodiscard]] constexpr int member_pitch(int pairs) { return member_words(pairs) | 1; }

/// Shared memory of a block of up to `pairs` pairs: the sets, a number for each expert, and the pairs'
/// experts.
[[nodiscard]] constexpr int order_bytes(int experts, int pairs) {
    return 4 * experts * member_pitch(pairs) + 4 * experts + 2 * pairs;
}

}  // namespace hone::expert_routing
