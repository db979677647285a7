// Quantize weights on the host: the problem as plain numbers, the call's arguments, and the variants. A
// variant's plan, constraints and cost stand in <variant>.cpp beside <variant>.cu.
#pragma once

#include <cstdint>

#include "kernel_templates/family.h"
#include "kernel_templates/quantized_linear/quantized_linear.h"

namespace hone::quantize_weights {

using quantized_linear::Format;

/// Index of each pointer of a call.
enum Pointer : int { weight, codes, scales, zeros, workspace, pointer_count };
/// Index of each scalar of a call. Strides count elements.
enum CallScalar : int { out, weight_stride, scalar_count };

/// What stands at the start of the workspace after a call: the first row with a weight that is infinite or no
/// number, and the first of w4a16 whose scale is beyond its dtype; no_row where there is none. Their codes
/// and scales mean nothing.
struct BadRows {
    std::int32_t not_finite;
    std::int32_t scale_too_large;
};
inline constexpr std::int32_t no_row = INT32_MAX;
/// Of the workspace, in front of the largest magnitudes of 8-bit formats, one for each scale.
inline constexpr std::int64_t maxima_offset = 256;

/// A problem as numbers.
struct WeightProblem {
    Dtype dtype = Dtype::bf16;
    Format format = Format::w4a16;
    std::int64_t group = 0;
    bool zeros = false;
    bool one_scale = false;
    bool search = true;
    Dtype scale_dtype = Dtype::bf16;  ///< fp32 but for w4a16
    std::int64_t in = 0;
    std::int64_t out = 0;

    [[nodiscard]] bool is_w4() const { return format == Format::w4a16; }
    /// Codes stand in blocks of 64 x 64; else row by row.
    [[nodiscard]] bool is_packed() const { return is_w4() || format == Format::w8a16; }
    [[nodiscard]] std::int64_t element_bytes() const { return size_bytes(dtype); }
    /// Columns that share a scale.
    [[nodiscard]] std::int64_t width() const { return group == 0 ? in : group; }
    /// Scales of a row of w4a16 as they are stored.
    [[nodiscard]] std::int64_t group_places() const { return quantized_linear::groups_of(in, group); }
    /// Scales as they are stored, padding included.
    [[nodiscard]] std::int64_t scale_count() const;
    /// Scales that a group of w4a16 is tried with; 1 without search.
    [[nodiscard]] std::int64_t trials() const;
};
[[nodiscard]] WeightProblem weight_problem(const Problem&);

extern const Variant warps;

/// A launch of the signature that all kernels share: all pointers, then all scalars.
[[nodiscard]] Launch launch(const char* kernel, std::int64_t blocks, std::int64_t threads);

}  // namespace hone::quantize_weights
