// What the workspace of a call holds behind results that are to be combined. Plain C++ that plans and kernels
// include alike.
#pragma once

namespace hone::expert_linear {

/// Where parts of sums begin, at a multiple of 256 bytes. `result_bytes`: those of a place's results, 0 where
/// nothing is combined.
constexpr long long partials_at(long long places, long long result_bytes) {
    return (places * result_bytes + 255) / 256 * 256;
}

}  // namespace hone::expert_linear
