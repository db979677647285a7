// QuantizedExpertLinear as the family's problems and calls. Generated from
// kernel_templates/quantized_expert_linear/operators.py by `./hone generate`.
#pragma once

#include "hone/quantized_expert_linear.h"
#include "kernel_templates/quantized_expert_linear/quantized_expert_linear.h"
#include "runtime/operators/call_arguments.h"

namespace hone::runtime {

/// The problem of the largest call. Throws std::invalid_argument naming field, value and what is allowed.
[[nodiscard]] Problem problem_of(const QuantizedExpertLinear& description);

/// The arguments in the family's order, strides filled in.
[[nodiscard]] inline Call call_of(const QuantizedExpertLinear& description,
                                  const QuantizedExpertLinearArgs& args, std::int64_t tokens) noexcept {
    Call call;
    call.pointers[quantized_expert_linear::x] = pointer(args.x);
    call.pointers[quantized_expert_linear::starts] = pointer(args.starts);
    call.pointers[quantized_expert_linear::rows] = pointer(args.rows);
    call.pointers[quantized_expert_linear::routing_weights] = pointer(args.routing_weights);
    call.pointers[quantized_expert_linear::weight] = pointer(args.weight.codes);
    call.pointers[quantized_expert_linear::scales] = pointer(args.weight.scales);
    call.pointers[quantized_expert_linear::zeros] = pointer(args.weight.zeros);
    call.pointers[quantized_expert_linear::up] = pointer(args.up.codes);
    call.pointers[quantized_expert_linear::up_scales] = pointer(args.up.scales);
    call.pointers[quantized_expert_linear::up_zeros] = pointer(args.up.zeros);
    call.pointers[quantized_expert_linear::bias] = pointer(args.bias);
    call.pointers[quantized_expert_linear::up_bias] = pointer(args.up_bias);
    call.pointers[quantized_expert_linear::out] = args.out;
    call.pointers[quantized_expert_linear::workspace] = args.workspace;
    call.scalars[quantized_expert_linear::tokens] = Scalar::of(tokens);
    call.scalars[quantized_expert_linear::x_stride] = Scalar::of(stride(args.x_stride, description.in));
    call.scalars[quantized_expert_linear::out_stride] = Scalar::of(stride(args.out_stride, description.out));
    return call;
}

}  // namespace hone::runtime
