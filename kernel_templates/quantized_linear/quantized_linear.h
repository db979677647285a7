// Quantized linear on the host: the problem as numbers. A variant's launch stands in plan.h and plan.cpp of
// its folder, beside kernel.cu, its space and preference in space.cpp and rank.cpp; plain has no folder.
#pragma once

#include <cstdint>

#include "kernel_templates/linear/normalize.h"
#include "kernel_templates/quantized_linear/declaration.h"
#include "kernel_templates/quantized_linear/layout.cuh"

namespace hone::quantized_linear {

struct QuantizedProblem : Fields {
    QuantizedProblem() = default;
    explicit QuantizedProblem(const Problem& problem) : Fields(fields_of(problem)) {}

    /// Codes of 4 or 8 bits are multiplied with 16-bit x; else 8-bit with 8-bit.
    [[nodiscard]] bool is_packed() const {
        return format == QuantFormat::w4a16 || format == QuantFormat::w8a16;
    }
    [[nodiscard]] int bits() const { return format == QuantFormat::w4a16 ? 4 : 8; }
    /// x is 16-bit and must become codes in front of the products.
    [[nodiscard]] bool quantizes_x() const { return !is_packed() && !quantized_x; }
    /// fp8 with a scale for 128 columns of x and for 128 x 128 of the weight.
    [[nodiscard]] bool has_blocks() const { return format == QuantFormat::fp8 && group != 0; }
    /// Scales stand beside the codes, one for each group of columns.
    [[nodiscard]] bool has_groups() const { return format == QuantFormat::w4a16 && group != 0; }
    [[nodiscard]] std::int64_t products() const { return gated ? 2 : 1; }
    [[nodiscard]] std::int64_t groups() const { return groups_of(in, group); }
    /// The same with weights of 16 bits.
    [[nodiscard]] linear::LinearProblem dense() const;
    [[nodiscard]] double flops() const {
        return 2.0 * static_cast<double>(products() * tokens) * static_cast<double>(in) *
               static_cast<double>(out);
    }

    /// How many times as large a row's error may be as if the values of its codes were rounded by themselves.
    [[nodiscard]] double alike_roundings() const;

    // The tensors of a call (tensors.cpp). Rows and columns of a weight's codes, one byte each or two codes a
    // byte, and of its scales or zero points.
    [[nodiscard]] Dtype code_dtype() const;
    [[nodiscard]] std::int64_t code_rows() const;
    [[nodiscard]] std::int64_t row_bytes() const;
    [[nodiscard]] Dtype scale_dtype() const;
    [[nodiscard]] std::int64_t scale_rows() const;
    [[nodiscard]] std::int64_t scale_columns() const;
    [[nodiscard]] Dtype x_dtype() const { return quantized_x ? code_dtype() : dtype; }

    // What tuning draws. Scales are between half and three halves of what makes values of the wanted
    // deviation.
    [[nodiscard]] Fill code_fill() const;
    [[nodiscard]] double code_fill_scale() const;
    [[nodiscard]] Fill x_fill() const { return quantized_x ? code_fill() : Fill::normal; }
    [[nodiscard]] double x_fill_scale() const { return quantized_x ? code_fill_scale() : 1.0; }
    [[nodiscard]] double x_scale() const;
    [[nodiscard]] double weight_scale() const;

    /// Bytes of all weights, with their scales and zero points.
    [[nodiscard]] double weight_bytes() const;
    /// Bytes of x as the caller gives it, with its scales.
    [[nodiscard]] double x_bytes() const;
    /// Bytes of the results, and of what is added to them.
    [[nodiscard]] double out_bytes() const;
};

/// The launch that normalizes x in front of a product (linear/normalize.h), with this family's arguments.
inline constexpr KernelArg normalize_args[] = {
    pointer_arg(x, "x"),
    pointer_arg(norm_weight, "norm_weight"),
    pointer_arg(workspace, "normalized"),
    scalar_arg(x_stride, "x_stride"),
    float_arg(epsilon, "epsilon"),
};
inline constexpr Kernel normalize{"linear_normalize", normalize_args};

}  // namespace hone::quantized_linear
