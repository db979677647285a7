// From the public descriptions of linear layers to problems of their family.
#pragma once

#include <span>
#include <string_view>

#include "hone/linear.h"
#include "kernel_templates/problem.h"
#include "runtime/dispatch/prepared_operator.h"

namespace hone::runtime {

/// The operator as a problem of `max_tokens` tokens. Throws std::invalid_argument naming field, value and
/// what is allowed.
[[nodiscard]] Problem linear_problem(const Linear& linear);
/// The halves of a feed-forward network.
[[nodiscard]] Problem first_half(const FusedFfn& ffn);
[[nodiscard]] Problem second_half(const FusedFfn& ffn);

/// Throws std::invalid_argument for a number that is no Activation.
[[nodiscard]] std::string_view activation_name(Activation activation);

/// Which scalars of a call are row strides, and of what.
[[nodiscard]] std::span<const RowStride> linear_row_strides();

}  // namespace hone::runtime
