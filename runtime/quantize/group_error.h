// Sums over a group of weights, in the order of kernel_templates/quantize_weights/scale_rule.cuh. Apart from
// the search that calls them: where a compiler knows the bounds of the codes it makes branches of them
// instead of vector code, and the loop takes four times as long.
#pragma once

#include <cstdint>

#include "kernel_templates/quantize_weights/scale_rule.cuh"

namespace hone::runtime {

/// Squared error of `count` values, a multiple of 32.
[[nodiscard]] float squared_error(const float* values, std::int64_t count,
                                  const quantize_weights::Codes& codes);

/// The scale that is best for the codes that `codes` gives; 0 where all of them are zero. `count` likewise.
[[nodiscard]] float best_scale_for(const float* values, std::int64_t count,
                                   const quantize_weights::Codes& codes);

}  // namespace hone::runtime
