// From the public description of quantizing weights to a problem of its family.
#pragma once

#include <span>

#include "hone/quantize.h"
#include "hone/quantize_weights.h"
#include "kernel_templates/problem.h"
#include "runtime/dispatch/prepared_operator.h"

namespace hone::runtime {

/// The operator as a problem of `max_out` rows. Throws std::invalid_argument naming field, value and what is
/// allowed.
[[nodiscard]] Problem quantize_problem(const QuantizeWeights& weights);

/// What is stored of a weight of `out` rows.
[[nodiscard]] PackedShape packed_shape(const QuantizeWeights& weights, std::int64_t out);

/// Which scalars of a call are row strides, and of what.
[[nodiscard]] std::span<const RowStride> quantize_strides();

}  // namespace hone::runtime
