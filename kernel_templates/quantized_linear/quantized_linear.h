// Quantized linear on the host: the problem as plain numbers, the call's arguments, and the variants. A
// variant's plan, constraints and cost stand in <variant>.cpp beside <variant>.cu.
#pragma once

#include <cstdint>

#include "kernel_templates/linear/normalize.h"
#include "kernel_templates/quantized_linear/layout.cuh"

namespace hone::quantized_linear {

using linear::Activation;
using linear::best_of;
using linear::ceil_div;

/// Index of each pointer of a call.
enum Pointer : int {
    x,
    x_scales,
    norm_weight,
    weight,
    scales,
    zeros,
    up,
    up_scales,
    up_zeros,
    bias,
    residual,
    out,
    workspace,
    pointer_count
};
/// Index of each scalar of a call. Strides count elements from one row to the next.
enum CallScalar : int {
    tokens,
    x_stride,
    x_scale_stride,  ///< 0: one scale for all tokens
    weight_stride,   ///< w8a8 and fp8; packed formats have none
    up_stride,
    scale_stride,  ///< w8a8 and fp8 without groups: 1, or 0 for one scale of the whole weight
    residual_stride,
    out_stride,
    epsilon,  ///< float32, of the norm
    scalar_count
};

/// Of a launch that normalizes x in front of a product (linear/normalize.h).
inline constexpr linear::NormArguments norm_arguments{
    .x = x, .norm_weight = norm_weight, .workspace = workspace, .x_stride = x_stride, .epsilon = epsilon};

/// Choices of the field `format`, in order.
enum class Format : std::int64_t { w4a16, w8a16, w8a8, fp8 };

/// A problem as numbers.
struct QuantizedProblem {
    Dtype dtype = Dtype::bf16;
    Format format = Format::w4a16;
    std::int64_t group = 0;
    bool zeros = false;
    bool quantized_x = false;
    bool norm = false;
    Activation activation = Activation::none;
    bool gated = false;
    bool bias = false;
    bool residual = false;
    std::int64_t in = 0;
    std::int64_t out = 0;
    std::int64_t tokens = 0;

    /// Codes of 4 or 8 bits are multiplied with 16-bit x; else 8-bit with 8-bit.
    [[nodiscard]] bool is_packed() const { return format == Format::w4a16 || format == Format::w8a16; }
    [[nodiscard]] int bits() const { return format == Format::w4a16 ? 4 : 8; }
    /// x is 16-bit and must become codes in front of the products.
    [[nodiscard]] bool quantizes_x() const { return !is_packed() && !quantized_x; }
    [[nodiscard]] std::int64_t products() const { return gated ? 2 : 1; }
    [[nodiscard]] std::int64_t groups() const { return groups_of(in, group); }
    /// The same with weights of 16 bits.
    [[nodiscard]] linear::LinearProblem dense() const;
    /// Of all weights, with their scales and zero points.
    [[nodiscard]] double weight_bytes() const;
    /// As the caller gives it, with its scales.
    [[nodiscard]] double x_bytes() const;
    /// Results, and what is added to them.
    [[nodiscard]] double out_bytes() const;
    [[nodiscard]] double flops() const {
        return 2.0 * static_cast<double>(products() * tokens) * static_cast<double>(in) *
               static_cast<double>(out);
    }
};
[[nodiscard]] QuantizedProblem quantized_problem(const Problem&);

extern const Variant wgmma_w16;
extern const Variant wgmma_w8;
extern const Variant stream;
extern const Variant ring;
extern const Variant dequantize;
extern const Variant mma;
extern const Variant plain;

/// A launch of the signature that most kernels share: all pointers, then all scalars.
[[nodiscard]] Launch launch(const char* kernel, Dim3 grid, std::int64_t threads);

}  // namespace hone::quantized_linear
