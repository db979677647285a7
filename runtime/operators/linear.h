// Linear as the family's problems and calls. Generated from kernel_templates/linear/operators.py by `./hone
// generate`.
#pragma once

#include "hone/linear.h"
#include "kernel_templates/linear/linear.h"
#include "runtime/operators/call_arguments.h"

namespace hone::runtime {

/// The problem of the largest call. Throws std::invalid_argument naming field, value and what is allowed.
[[nodiscard]] Problem problem_of(const Linear& description);

/// The arguments in the family's order, strides filled in.
[[nodiscard]] inline Call call_of(const Linear& description, const LinearArgs& args,
                                  std::int64_t tokens) noexcept {
    Call call;
    call.pointers[linear::x] = pointer(args.x);
    call.pointers[linear::weight] = pointer(args.weight);
    call.pointers[linear::bias] = pointer(args.bias);
    call.pointers[linear::residual] = pointer(args.residual);
    call.pointers[linear::out] = args.out;
    call.pointers[linear::workspace] = args.workspace;
    call.pointers[linear::norm_weight] = pointer(args.norm_weight);
    call.scalars[linear::tokens] = Scalar::of(tokens);
    call.scalars[linear::x_stride] = Scalar::of(stride(args.x_stride, description.in));
    call.scalars[linear::weight_stride] = Scalar::of(stride(args.weight_stride, description.in));
    call.scalars[linear::up_stride] = Scalar::of(description.in);
    call.scalars[linear::residual_stride] = Scalar::of(stride(args.residual_stride, description.out));
    call.scalars[linear::out_stride] = Scalar::of(stride(args.out_stride, description.out));
    call.scalars[linear::epsilon] = Scalar::of(args.epsilon);
    return call;
}

}  // namespace hone::runtime
