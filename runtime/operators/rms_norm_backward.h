// RmsNormBackward as the family's problems and calls. Generated from
// kernel_templates/rmsnorm_backward/operators.py by `./hone generate`.
#pragma once

#include "hone/rms_norm_backward.h"
#include "kernel_templates/rmsnorm_backward/backward.h"
#include "runtime/operators/call_arguments.h"

namespace hone::runtime {

/// The problem of the largest call. Throws std::invalid_argument naming field, value and what is allowed.
[[nodiscard]] Problem problem_of(const RmsNormBackward& description);

/// The arguments in the family's order, strides filled in.
[[nodiscard]] inline Call call_of(const RmsNormBackward& description, const RmsNormBackwardArgs& args,
                                  std::int64_t rows) noexcept {
    Call call;
    call.pointers[rmsnorm_backward::dy] = pointer(args.dy);
    call.pointers[rmsnorm_backward::x] = pointer(args.x);
    call.pointers[rmsnorm_backward::weight] = pointer(args.weight);
    call.pointers[rmsnorm_backward::dsum] = pointer(args.dsum);
    call.pointers[rmsnorm_backward::dx] = args.dx;
    call.pointers[rmsnorm_backward::dweight] = args.dweight;
    call.pointers[rmsnorm_backward::workspace] = args.workspace;
    call.scalars[rmsnorm_backward::rows] = Scalar::of(rows);
    call.scalars[rmsnorm_backward::dy_stride] = Scalar::of(stride(args.dy_stride, description.hidden));
    call.scalars[rmsnorm_backward::x_stride] = Scalar::of(stride(args.x_stride, description.hidden));
    call.scalars[rmsnorm_backward::dsum_stride] = Scalar::of(stride(args.dsum_stride, description.hidden));
    call.scalars[rmsnorm_backward::dx_stride] = Scalar::of(stride(args.dx_stride, description.hidden));
    call.scalars[rmsnorm_backward::epsilon] = Scalar::of(args.epsilon);
    return call;
}

}  // namespace hone::runtime
