// Quantize weights on the host: the problem as numbers, and what a call leaves in the workspace. The launches
// stand in warps_plan.cpp, their space and cost in warps.cpp, beside warps.cu.
#pragma once

#include <cstdint>

#include "kernel_templates/kit/ceil_div.h"
#include "kernel_templates/quantize_weights/declaration.h"
#include "kernel_templates/quantized_linear/layout.cuh"

namespace hone::quantize_weights {

/// What stands at the start of the workspace after a call: the first row with a weight that is infinite or
/// NaN, and the first of w4a16 whose scale is beyond its dtype; no_row where there is none. Their codes
/// and scales mean nothing.
struct BadRows {
    std::int32_t not_finite;
    std::int32_t scale_too_large;
};
inline constexpr std::int32_t no_row = INT32_MAX;
/// Place in the workspace of the largest magnitudes of 8-bit formats, one for each scale.
inline constexpr std::int64_t maxima_offset = 256;

struct WeightProblem : Fields {
    WeightProblem() = default;
    explicit WeightProblem(const Problem& problem) : Fields(fields_of(problem)) {}

    [[nodiscard]] bool is_w4() const { return format == QuantFormat::w4a16; }
    /// Codes stand in blocks of 64 x 64; else row by row.
    [[nodiscard]] bool is_packed() const { return is_w4() || format == QuantFormat::w8a16; }
    [[nodiscard]] std::int64_t element_bytes() const { return size_bytes(dtype); }
    /// Columns that share a scale.
    [[nodiscard]] std::int64_t width() const { return group == 0 ? in : group; }
    /// Scales of a row of w4a16 as they are stored.
    [[nodiscard]] std::int64_t group_places() const { return quantized_linear::groups_of(in, group); }

    // The tensors that a call writes. Rows and columns of codes: bytes, of two codes each for w4a16.
    [[nodiscard]] Dtype code_dtype() const {
        return format == QuantFormat::fp8 ? Dtype::fp8_e4m3 : Dtype::int8;
    }
    [[nodiscard]] std::int64_t code_rows() const {
        return is_packed() ? quantized_linear::whole_blocks(out) : out;
    }
    [[nodiscard]] std::int64_t row_bytes() const {
        return is_packed() ? quantized_linear::packed_bytes(1, in, is_w4() ? 4 : 8) : in;
    }
    [[nodiscard]] Dtype stored_scale_dtype() const { return is_w4() ? scale_dtype : Dtype::fp32; }
    /// Scales as they are stored, padding included.
    [[nodiscard]] std::int64_t scale_count() const;
};

}  // namespace hone::quantize_weights
