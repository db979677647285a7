// run() of the norms: arguments become a Call, in the order that kernel_templates/norm/norm.h and
// kernel_templates/rmsnorm_backward/backward.h declare.
#include "hone/norm.h"

#include "kernel_templates/norm/norm.h"
#include "kernel_templates/rmsnorm_backward/backward.h"
#include "runtime/dispatch/prepared_operator.h"
#include "runtime/operators/call_arguments.h"

namespace hone {
namespace {

using runtime::pointer;
using runtime::stride;

template <class Args>
Call norm_call(const Args& args, const void* bias, std::int64_t hidden, std::int64_t rows) {
    Call call;
    call.pointers[norm::x] = pointer(args.x);
    call.pointers[norm::residual] = pointer(args.residual);
    call.pointers[norm::weight] = pointer(args.weight);
    call.pointers[norm::bias] = pointer(bias);
    call.pointers[norm::out] = args.out;
    call.pointers[norm::sum] = args.sum;
    call.pointers[norm::scale] = args.scale;
    call.scalars[norm::rows] = Scalar::of(rows);
    call.scalars[norm::x_stride] = stride(args.x_stride, hidden);
    call.scalars[norm::residual_stride] = stride(args.residual_stride, hidden);
    call.scalars[norm::out_stride] = stride(args.out_stride, hidden);
    call.scalars[norm::sum_stride] = stride(args.sum_stride, hidden);
    call.scalars[norm::epsilon] = Scalar::of(args.epsilon);
    return call;
}

Call backward_call(const RmsNormBackwardArgs& args, std::int64_t hidden, std::int64_t rows) {
    Call call;
    call.pointers[rmsnorm_backward::dy] = pointer(args.dy);
    call.pointers[rmsnorm_backward::x] = pointer(args.x);
    call.pointers[rmsnorm_backward::weight] = pointer(args.weight);
    call.pointers[rmsnorm_backward::dsum] = pointer(args.dsum);
    call.pointers[rmsnorm_backward::dx] = args.dx;
    call.pointers[rmsnorm_backward::dweight] = args.dweight;
    call.pointers[rmsnorm_backward::workspace] = args.workspace;
    call.scalars[rmsnorm_backward::rows] = Scalar::of(rows);
    call.scalars[rmsnorm_backward::dy_stride] = stride(args.dy_stride, hidden);
    call.scalars[rmsnorm_backward::x_stride] = stride(args.x_stride, hidden);
    call.scalars[rmsnorm_backward::dsum_stride] = stride(args.dsum_stride, hidden);
    call.scalars[rmsnorm_backward::dx_stride] = stride(args.dx_stride, hidden);
    call.scalars[rmsnorm_backward::epsilon] = Scalar::of(args.epsilon);
    return call;
}

}  // namespace

Status RmsNormKernel::run(CUstream_st* stream, const RmsNormArgs& args, std::int64_t rows) const noexcept {
    if (operator_ == nullptr) return Status::not_prepared;
    return operator_->run(stream, norm_call(args, nullptr, hidden_, rows), {rows});
}

Status LayerNormKernel::run(CUstream_st* stream, const LayerNormArgs& args,
                            std::int64_t rows) const noexcept {
    if (operator_ == nullptr) return Status::not_prepared;
    return operator_->run(stream, norm_call(args, args.bias, hidden_, rows), {rows});
}

Status RmsNormBackwardKernel::run(CUstream_st* stream, const RmsNormBackwardArgs& args,
                                  std::int64_t rows) const noexcept {
    if (operator_ == nullptr) return Status::not_prepared;
    return operator_->run(stream, backward_call(args, hidden_, rows), {rows});
}

}  // namespace hone
