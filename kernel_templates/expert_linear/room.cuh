// What the workspace of a call holds: results that are to be combined, then copies of x's rows, then parts of
// sums. Plain C++ that plans and kernels include alike.
#pragma once

namespace hone::expert_linear {

constexpr long long whole_256(long long bytes) { return (bytes + 255) / 256 * 256; }

/// Where copies of rows begin, at a multiple of 256 bytes. `result_bytes`: those of a place's results, 0
/// where nothing is combined.
constexpr long long copies_at(long long places, long long result_bytes) {
    return whole_256(places * result_bytes);
}
/// Where parts of sums begin. `copy_bytes`: those of a place's row of x, 0 where none is copied.
constexpr long long partials_at(long long places, long long result_bytes, long long copy_bytes) {
    return copies_at(places, result_bytes) + whole_256(places * copy_bytes);
}

}  // namespace hone::expert_linear
