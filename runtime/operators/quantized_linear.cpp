// run() of quantized linear layers and of the feed-forward network: arguments become calls, in the order that
// kernel_templates/quantized_linear/quantized_linear.h declares.
#include "hone/quantized_linear.h"

#include "kernel_templates/quantized_linear/quantized_linear.h"
#include "runtime/dispatch/prepared_operator.h"
#include "runtime/operators/call_arguments.h"
#include "runtime/operators/quantized_linear_problem.h"

namespace hone {
namespace {

using runtime::pointer;
using runtime::stride;

void set_weight(Call& call, const QuantizedWeightPointers& weight) {
    call.pointers[quantized_linear::weight] = pointer(weight.codes);
    call.pointers[quantized_linear::scales] = pointer(weight.scales);
    call.pointers[quantized_linear::zeros] = pointer(weight.zeros);
}

void set_up(Call& call, const QuantizedWeightPointers& up) {
    call.pointers[quantized_linear::up] = pointer(up.codes);
    call.pointers[quantized_linear::up_scales] = pointer(up.scales);
    call.pointers[quantized_linear::up_zeros] = pointer(up.zeros);
}

/// A stride of 0 means "as usual" here and "one for all" there.
Scalar x_scale_stride(std::int64_t given, const QuantizedLinear& linear) {
    if (linear.one_x_scale) return Scalar::of(std::int64_t{0});
    return stride(given, quantized_linear::groups_of(linear.in, linear.group));
}

Call quantized_call(const QuantizedLinearArgs& args, const QuantizedLinear& linear, std::int64_t tokens) {
    Call call;
    set_weight(call, args.weight);
    call.pointers[quantized_linear::x] = pointer(args.x);
    call.pointers[quantized_linear::x_scales] = pointer(args.x_scales);
    call.pointers[quantized_linear::norm_weight] = pointer(args.norm_weight);
    call.pointers[quantized_linear::bias] = pointer(args.bias);
    call.pointers[quantized_linear::residual] = pointer(args.residual);
    call.pointers[quantized_linear::out] = args.out;
    call.pointers[quantized_linear::workspace] = args.workspace;
    call.scalars[quantized_linear::tokens] = Scalar::of(tokens);
    call.scalars[quantized_linear::x_stride] = stride(args.x_stride, linear.in);
    call.scalars[quantized_linear::x_scale_stride] = x_scale_stride(args.x_scale_stride, linear);
    call.scalars[quantized_linear::weight_stride] = stride(args.weight_stride, linear.in);
    call.scalars[quantized_linear::up_stride] = Scalar::of(linear.in);
    call.scalars[quantized_linear::scale_stride] = Scalar::of(std::int64_t{linear.one_scale ? 0 : 1});
    call.scalars[quantized_linear::residual_stride] = stride(args.residual_stride, linear.out);
    call.scalars[quantized_linear::out_stride] = stride(args.out_stride, linear.out);
    call.scalars[quantized_linear::epsilon] = Scalar::of(args.epsilon);
    return call;
}

}  // namespace

Status QuantizedLinearKernel::run(CUstream_st* stream, const QuantizedLinearArgs& args,
                                  std::int64_t tokens) const noexcept {
    if (operator_ == nullptr) return Status::not_prepared;
    return operator_->run(stream, quantized_call(args, linear_, tokens), {tokens});
}

Status QuantizedFfnKernel::run(CUstream_st* stream, const QuantizedFfnArgs& args,
                               std::int64_t tokens) const noexcept {
    Rooms rooms;
    if (const Status wrong = divide(args.workspace, tokens, rooms); wrong != Status::ok) return wrong;
    Call first_call = quantized_call({.x = args.x,
                                      .x_scales = args.x_scales,
                                      .weight = ffn_.gated ? args.gate : args.up,
                                      .bias = args.up_bias,
                                      .out = rooms.intermediate,
                                      .workspace = rooms.rest,
                                      .x_stride = args.x_stride,
                                      .x_scale_stride = args.x_scale_stride,
                                      .norm_weight = args.norm_weight,
                                      .epsilon = args.epsilon},
                                     runtime::first_layer(ffn_), tokens);
    set_up(first_call, args.up);
    const QuantizedLinearArgs second{.x = rooms.intermediate,
                                     .weight = args.down,
                                     .bias = args.down_bias,
                                     .residual = args.residual,
                                     .out = args.out,
                                     .workspace = rooms.rest,
                                     .residual_stride = args.residual_stride,
                                     .out_stride = args.out_stride};
    const Call second_call = quantized_call(second, runtime::second_layer(ffn_), tokens);
    return run_both(stream, first_call, second_call, tokens);
}

}  // namespace hone
