// From the public descriptions of quantized linear layers to problems of their family.
#pragma once

#include <string_view>
#include <vector>

#include "hone/quantized_linear.h"
#include "kernel_templates/problem.h"
#include "runtime/dispatch/prepared_operator.h"

namespace hone::runtime {

/// Throws std::invalid_argument for what is no enumerator.
[[nodiscard]] std::string_view format_name(QuantFormat format);

/// The operator as a problem of `max_tokens` tokens. Throws std::invalid_argument naming field, value and
/// what is allowed.
[[nodiscard]] Problem quantized_problem(const QuantizedLinear& linear);
/// The halves of a feed-forward network.
[[nodiscard]] Problem first_half(const QuantizedFfn& ffn);
[[nodiscard]] Problem second_half(const QuantizedFfn& ffn);

/// The halves as layers; the first, where gated, but for its second weight.
[[nodiscard]] QuantizedLinear first_layer(const QuantizedFfn& ffn) noexcept;
[[nodiscard]] QuantizedLinear second_layer(const QuantizedFfn& ffn) noexcept;

/// Which scalars of a call are row strides, and of what.
[[nodiscard]] std::vector<RowStride> row_strides(const QuantizedLinear& linear);

}  // namespace hone::runtime
