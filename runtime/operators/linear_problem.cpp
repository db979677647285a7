#include "runtime/operators/linear_problem.h"

#include <fmt/format.h>

#include <stdexcept>

#include "kernel_templates/linear/linear.h"
#include "runtime/operators/describe_problem.h"

namespace hone::runtime {
namespace {

constexpr RowStride strides[] = {{linear::x_stride, linear::x},
                                 {linear::weight_stride, linear::weight},
                                 {linear::up_stride, linear::up},
                                 {linear::residual_stride, linear::residual},
                                 {linear::out_stride, linear::out}};

Problem problem_of(const Linear& linear, bool gated) {
    return describe_problem(
        "linear",
        fmt::format("dtype={} norm={} activation={} gated={} bias={} residual={} in={} out={}",
                    dtype_name(linear.dtype), yes_no(linear.norm), activation_name(linear.activation),
                    yes_no(gated), yes_no(linear.bias), yes_no(linear.residual), linear.in, linear.out),
        {{"max_tokens", linear.max_tokens}});
}

}  // namespace

std::string_view activation_name(Activation activation) {
    switch (activation) {
        case Activation::none: return "none";
        case Activation::gelu_tanh: return "gelu_tanh";
        case Activation::gelu_erf: return "gelu_erf";
        case Activation::silu: return "silu";
        case Activation::relu: return "relu";
    }
    throw std::invalid_argument(fmt::format(
        "activation is {}; allowed: none, gelu_tanh, gelu_erf, silu, relu", static_cast<int>(activation)));
}

Problem linear_problem(const Linear& linear) { return problem_of(linear, false); }

Problem first_half(const FusedFfn& ffn) {
    return problem_of({.in = ffn.hidden,
                       .out = ffn.intermediate,
                       .max_tokens = ffn.max_tokens,
                       .dtype = ffn.dtype,
                       .activation = ffn.activation,
                       .bias = ffn.bias,
                       .norm = ffn.norm},
                      ffn.gated);
}

Problem second_half(const FusedFfn& ffn) {
    return problem_of({.in = ffn.intermediate,
                       .out = ffn.hidden,
                       .max_tokens = ffn.max_tokens,
                       .dtype = ffn.dtype,
                       .bias = ffn.bias,
                       .residual = ffn.residual},
                      false);
}

std::span<const RowStride> linear_row_strides() { return strides; }

}  // namespace hone::runtime
