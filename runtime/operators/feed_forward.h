// Feed-forward networks as two linear layers, the first of which may have a gate.
#pragma once

#include "hone/fused_ffn.h"
#include "hone/linear.h"
#include "hone/quantized_ffn.h"
#include "hone/quantized_linear.h"
#include "kernel_templates/problem.h"

namespace hone::runtime {

/// The halves as layers; the first, where gated, but for its second weight.
[[nodiscard]] Linear first_layer(const FusedFfn& ffn);
[[nodiscard]] Linear second_layer(const FusedFfn& ffn);
[[nodiscard]] QuantizedLinear first_layer(const QuantizedFfn& ffn);
[[nodiscard]] QuantizedLinear second_layer(const QuantizedFfn& ffn);

/// The halves as problems. Each throws std::invalid_argument naming field, value and what is allowed.
[[nodiscard]] Problem first_half(const FusedFfn& ffn);
[[nodiscard]] Problem second_half(const FusedFfn& ffn);
[[nodiscard]] Problem first_half(const QuantizedFfn& ffn);
[[nodiscard]] Problem second_half(const QuantizedFfn& ffn);

}  // namespace hone::runtime
