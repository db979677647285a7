// Rows of a weight of any dtype, as float.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernel_templates/dtype.h"

namespace hone::runtime {

/// A weight [out, in] of fp32, fp16 or bf16, row by row.
class WeightRows {
  public:
    /// Throws Error unless the dtype is one of those and the bytes are as many as the elements need.
    /// `first_row`: what errors call row 0.
    WeightRows(std::span<const std::byte> weights, Dtype dtype, std::int64_t out, std::int64_t in,
               std::int64_t first_row = 0);

    /// Writes row `row` to values[0] to values[in - 1]. Throws Error, which names the first element, where
    /// one is infinite or NaN.
    void read(std::int64_t row, float* values) const;

    [[nodiscard]] std::int64_t first_row() const { return first_row_; }

  private:
    std::span<const std::byte> weights_;
    Dtype dtype_;
    std::int64_t in_;
    std::int64_t first_row_;
};

/// Largest magnitude of `count` values.
[[nodiscard]] float largest_magnitude(const float* values, std::int64_t count);

}  // namespace hone::runtime
