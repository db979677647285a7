// The element type that a problem of quantizing weights has for scales.
#pragma once

#include "hone/quantize_weights.h"

namespace hone::runtime {

/// Scales of other formats than w4a16 are fp32, which their problem does not say.
[[nodiscard]] constexpr Dtype scale_dtype_of(const QuantizeWeights& weights) noexcept {
    return weights.format == QuantFormat::w4a16 ? weights.scale_dtype : Dtype::bf16;
}

}  // namespace hone::runtime
