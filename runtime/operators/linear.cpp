// run() of linear layers and of the feed-forward network: arguments become calls, in the order that
// kernel_templates/linear/linear.h declares.
#include "hone/linear.h"

#include "kernel_templates/linear/linear.h"
#include "runtime/dispatch/prepared_operator.h"
#include "runtime/operators/call_arguments.h"

namespace hone {
namespace {

using runtime::pointer;
using runtime::stride;

Call linear_call(const LinearArgs& args, std::int64_t in, std::int64_t out, std::int64_t tokens) {
    Call call;
    call.pointers[linear::x] = pointer(args.x);
    call.pointers[linear::norm_weight] = pointer(args.norm_weight);
    call.pointers[linear::weight] = pointer(args.weight);
    call.pointers[linear::bias] = pointer(args.bias);
    call.pointers[linear::residual] = pointer(args.residual);
    call.pointers[linear::out] = args.out;
    call.pointers[linear::workspace] = args.workspace;
    call.scalars[linear::tokens] = Scalar::of(tokens);
    call.scalars[linear::x_stride] = stride(args.x_stride, in);
    call.scalars[linear::weight_stride] = stride(args.weight_stride, in);
    call.scalars[linear::up_stride] = Scalar::of(in);
    call.scalars[linear::residual_stride] = stride(args.residual_stride, out);
    call.scalars[linear::out_stride] = stride(args.out_stride, out);
    call.scalars[linear::epsilon] = Scalar::of(args.epsilon);
    return call;
}

}  // namespace

Status LinearKernel::run(CUstream_st* stream, const LinearArgs& args, std::int64_t tokens) const noexcept {
    if (operator_ == nullptr) return Status::not_prepared;
    return operator_->run(stream, linear_call(args, in_, out_, tokens), {tokens});
}

Status FusedFfnKernel::run(CUstream_st* stream, const FusedFfnArgs& args,
                           std::int64_t tokens) const noexcept {
    Rooms rooms;
    if (const Status wrong = divide(args.workspace, tokens, rooms); wrong != Status::ok) return wrong;
    Call first_call = linear_call({.x = args.x,
                                   .weight = ffn_.gated ? args.gate : args.up,
                                   .bias = args.up_bias,
                                   .out = rooms.intermediate,
                                   .workspace = rooms.rest,
                                   .x_stride = args.x_stride,
                                   .norm_weight = args.norm_weight,
                                   .epsilon = args.epsilon},
                                  ffn_.hidden, ffn_.intermediate, tokens);
    first_call.pointers[linear::up] = pointer(args.up);
    const LinearArgs second{.x = rooms.intermediate,
                            .weight = args.down,
                            .bias = args.down_bias,
                            .residual = args.residual,
                            .out = args.out,
                            .workspace = rooms.rest,
                            .residual_stride = args.residual_stride,
                            .out_stride = args.out_stride};
    return run_both(stream, first_call, linear_call(second, ffn_.intermediate, ffn_.hidden, tokens), tokens);
}

}  // namespace hone
