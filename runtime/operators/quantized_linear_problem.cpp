#include "runtime/operators/quantized_linear_problem.h"

#include <fmt/format.h>

#include <stdexcept>

#include "kernel_templates/quantized_linear/quantized_linear.h"
#include "runtime/operators/describe_problem.h"
#include "runtime/operators/linear_problem.h"

namespace hone::runtime {
namespace {

constexpr const char* family = "quantized_linear";

bool is_packed(QuantFormat format) { return format == QuantFormat::w4a16 || format == QuantFormat::w8a16; }

/// Of what a problem does not tell: it is in the strides of a call.
void check_single_scales(const QuantizedLinear& linear) {
    if (linear.one_scale && (is_packed(linear.format) || linear.group != 0)) {
        throw std::invalid_argument(
            fmt::format("{}: one_scale is for format=w8a8 and fp8 with group=0; here are format={} group={}",
                        family, name(linear.format), linear.group));
    }
    if (linear.one_x_scale && (!linear.quantized_x || linear.group != 0)) {
        throw std::invalid_argument(fmt::format(
            "{}: one_x_scale is for quantized_x=yes with group=0; here are quantized_x={} group={}", family,
            yes_no(linear.quantized_x), linear.group));
    }
}

Problem problem_of(const QuantizedLinear& linear, bool gated) {
    check_single_scales(linear);
    return describe_problem(
        family,
        fmt::format("dtype={} format={} group={} zeros={} quantized_x={} norm={} activation={} gated={} "
                    "bias={} residual={} in={} out={}",
                    dtype_name(linear.dtype), name(linear.format), linear.group, yes_no(linear.zeros),
                    yes_no(linear.quantized_x), yes_no(linear.norm), activation_name(linear.activation),
                    yes_no(gated), yes_no(linear.bias), yes_no(linear.residual), linear.in, linear.out),
        {{"max_tokens", linear.max_tokens}});
}

/// What both layers of a network have.
QuantizedLinear layer_of(const QuantizedFfn& ffn, std::int64_t in, std::int64_t out) noexcept {
    return {.in = in,
            .out = out,
            .max_tokens = ffn.max_tokens,
            .dtype = ffn.dtype,
            .format = ffn.format,
            .group = ffn.group,
            .zeros = ffn.zeros,
            .one_scale = ffn.one_scale,
            .bias = ffn.bias};
}

}  // namespace

std::string_view format_name(QuantFormat format) {
    switch (format) {
        case QuantFormat::w4a16: return "w4a16";
        case QuantFormat::w8a16: return "w8a16";
        case QuantFormat::w8a8: return "w8a8";
        case QuantFormat::fp8: return "fp8";
    }
    throw std::invalid_argument(
        fmt::format("format is {}; allowed: w4a16, w8a16, w8a8, fp8", static_cast<int>(format)));
}

Problem quantized_problem(const QuantizedLinear& linear) { return problem_of(linear, false); }
Problem first_half(const QuantizedFfn& ffn) { return problem_of(first_layer(ffn), ffn.gated); }
Problem second_half(const QuantizedFfn& ffn) { return problem_of(second_layer(ffn), false); }

QuantizedLinear first_layer(const QuantizedFfn& ffn) noexcept {
    QuantizedLinear layer = layer_of(ffn, ffn.hidden, ffn.intermediate);
    layer.quantized_x = ffn.quantized_x;
    layer.one_x_scale = ffn.one_x_scale;
    layer.activation = ffn.activation;
    layer.norm = ffn.norm;
    return layer;
}

QuantizedLinear second_layer(const QuantizedFfn& ffn) noexcept {
    QuantizedLinear layer = layer_of(ffn, ffn.intermediate, ffn.hidden);
    layer.residual = ffn.residual;
    return layer;
}

std::vector<RowStride> row_strides(const QuantizedLinear& linear) {
    using namespace quantized_linear;
    std::vector<RowStride> strides{{x_stride, x}, {residual_stride, residual}, {out_stride, out}};
    if (!linear.one_x_scale) strides.push_back({x_scale_stride, x_scales});
    if (!is_packed(linear.format)) {
        strides.push_back({weight_stride, weight});
        strides.push_back({up_stride, up});
    }
    return strides;
}

}  // namespace hone::runtime
