// ExpertLinear as the family's problems and calls. Generated from kernel_templates/expert_linear/operators.py
// by `./hone generate`.
#pragma once

#include "hone/expert_linear.h"
#include "kernel_templates/expert_linear/expert_linear.h"
#include "runtime/operators/call_arguments.h"

namespace hone::runtime {

/// The problem of the largest call. Throws std::invalid_argument naming field, value and what is allowed.
[[nodiscard]] Problem problem_of(const ExpertLinear& description);

/// The arguments in the family's order, strides filled in.
[[nodiscard]] inline Call call_of(const ExpertLinear& description, const ExpertLinearArgs& args,
                                  std::int64_t tokens) noexcept {
    Call call;
    call.pointers[expert_linear::x] = pointer(args.x);
    call.pointers[expert_linear::starts] = pointer(args.starts);
    call.pointers[expert_linear::rows] = pointer(args.rows);
    call.pointers[expert_linear::routing_weights] = pointer(args.routing_weights);
    call.pointers[expert_linear::weight] = pointer(args.weight);
    call.pointers[expert_linear::up] = pointer(args.up);
    call.pointers[expert_linear::bias] = pointer(args.bias);
    call.pointers[expert_linear::up_bias] = pointer(args.up_bias);
    call.pointers[expert_linear::out] = args.out;
    call.pointers[expert_linear::workspace] = args.workspace;
    call.scalars[expert_linear::tokens] = Scalar::of(tokens);
    call.scalars[expert_linear::x_stride] = Scalar::of(stride(args.x_stride, description.in));
    call.scalars[expert_linear::out_stride] = Scalar::of(stride(args.out_stride, description.out));
    return call;
}

}  // namespace hone::runtime
