// QuantizedLinear as the family's problems and calls. Generated from
// kernel_templates/quantized_linear/operators.py by `./hone generate`.
#pragma once

#include "hone/quantized_linear.h"
#include "kernel_templates/quantized_linear/quantized_linear.h"
#include "runtime/operators/call_arguments.h"

namespace hone::runtime {

/// The problem of the largest call. Throws std::invalid_argument naming field, value and what is allowed.
[[nodiscard]] Problem problem_of(const QuantizedLinear& description);
/// What the family does not know, written by hand. Throws the same.
void check_description(const QuantizedLinear& description);

/// The arguments in the family's order, strides filled in.
[[nodiscard]] inline Call call_of(const QuantizedLinear& description, const QuantizedLinearArgs& args,
                                  std::int64_t tokens) noexcept {
    Call call;
    call.pointers[quantized_linear::x] = pointer(args.x);
    call.pointers[quantized_linear::x_scales] = pointer(args.x_scales);
    call.pointers[quantized_linear::weight] = pointer(args.weight.codes);
    call.pointers[quantized_linear::scales] = pointer(args.weight.scales);
    call.pointers[quantized_linear::zeros] = pointer(args.weight.zeros);
    call.pointers[quantized_linear::bias] = pointer(args.bias);
    call.pointers[quantized_linear::residual] = pointer(args.residual);
    call.pointers[quantized_linear::out] = args.out;
    call.pointers[quantized_linear::workspace] = args.workspace;
    call.pointers[quantized_linear::norm_weight] = pointer(args.norm_weight);
    call.scalars[quantized_linear::tokens] = Scalar::of(tokens);
    call.scalars[quantized_linear::x_stride] = Scalar::of(stride(args.x_stride, description.in));
    call.scalars[quantized_linear::x_scale_stride] = Scalar::of(
        description.one_x_scale
            ? 0
            : stride(args.x_scale_stride, quantized_linear::groups_of(description.in, description.group)));
    call.scalars[quantized_linear::weight_stride] =
        Scalar::of(is_packed(description.format) ? 0 : stride(args.weight_stride, description.in));
    call.scalars[quantized_linear::up_stride] =
        Scalar::of(std::int64_t{is_packed(description.format) ? 0 : description.in});
    call.scalars[quantized_linear::scale_stride] = Scalar::of(std::int64_t{description.one_scale ? 0 : 1});
    call.scalars[quantized_linear::residual_stride] =
        Scalar::of(stride(args.residual_stride, description.out));
    call.scalars[quantized_linear::out_stride] = Scalar::of(stride(args.out_stride, description.out));
    call.scalars[quantized_linear::epsilon] = Scalar::of(args.epsilon);
    return call;
}

}  // namespace hone::runtime
