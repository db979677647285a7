// From the public descriptions of norms to problems of their families.
#pragma once

#include "hone/norm.h"
#include "kernel_templates/problem.h"
#include "runtime/dispatch/prepared_operator.h"

namespace hone::runtime {

/// The norm as a problem of `max_rows` rows. Throws std::invalid_argument naming field, value and what is
/// allowed.
[[nodiscard]] Problem norm_problem(const RmsNorm& norm);
[[nodiscard]] Problem norm_problem(const LayerNorm& norm);
[[nodiscard]] Problem norm_problem(const RmsNormBackward& norm);

/// Which scalars of their calls are row strides, and of what.
[[nodiscard]] std::span<const RowStride> row_strides(const RmsNorm& norm);
[[nodiscard]] std::span<const RowStride> row_strides(const LayerNorm& norm);
[[nodiscard]] std::span<const RowStride> row_strides(const RmsNormBackward& norm);

}  // namespace hone::runtime
