// RmsNorm and LayerNorm as the family's problems and calls. Generated from kernel_templates/norm/operators.py
// by `./hone generate`.
#pragma once

#include "hone/norm.h"
#include "kernel_templates/norm/norm.h"
#include "runtime/operators/call_arguments.h"

namespace hone::runtime {

/// The problem of the largest call. Throws std::invalid_argument naming field, value and what is allowed.
[[nodiscard]] Problem problem_of(const RmsNorm& description);
[[nodiscard]] Problem problem_of(const LayerNorm& description);

/// The arguments in the family's order, strides filled in.
[[nodiscard]] inline Call call_of(std::int64_t hidden, const NormArgs& args, std::int64_t rows) noexcept {
    Call call;
    call.pointers[norm::x] = pointer(args.x);
    call.pointers[norm::residual] = pointer(args.residual);
    call.pointers[norm::weight] = pointer(args.weight);
    call.pointers[norm::bias] = pointer(args.bias);
    call.pointers[norm::out] = args.out;
    call.pointers[norm::sum] = args.sum;
    call.pointers[norm::scale] = args.scale;
    call.scalars[norm::rows] = Scalar::of(rows);
    call.scalars[norm::x_stride] = Scalar::of(stride(args.x_stride, hidden));
    call.scalars[norm::residual_stride] = Scalar::of(stride(args.residual_stride, hidden));
    call.scalars[norm::out_stride] = Scalar::of(stride(args.out_stride, hidden));
    call.scalars[norm::sum_stride] = Scalar::of(stride(args.sum_stride, hidden));
    call.scalars[norm::epsilon] = Scalar::of(args.epsilon);
    return call;
}

}  // namespace hone::runtime
