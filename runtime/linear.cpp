// run() of linear layers and of the feed-forward network: arguments become calls, in the order that
// kernel_templates/linear/linear.h declares.
#include "hone/linear.h"

#include <algorithm>

#include "kernel_templates/linear/linear.h"
#include "runtime/call_arguments.h"
#include "runtime/prepared_operator.h"

namespace hone {
namespace {

using runtime::pointer;
using runtime::stride;

constexpr std::int64_t aligned(std::int64_t bytes) {
    return (bytes + workspace_alignment - 1) / workspace_alignment * workspace_alignment;
}

std::int64_t intermediate_bytes(const FusedFfn& ffn, std::int64_t tokens) {
    return aligned(tokens * ffn.intermediate * size_bytes(ffn.dtype));
}

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
    if (!*this) return Status::not_prepared;
    if (tokens < 0 || tokens > ffn_.max_tokens) return Status::bad_rows;
    if (tokens > 0 && args.workspace == nullptr) return Status::null_pointer;
    auto* const intermediate = static_cast<std::byte*>(args.workspace);
    std::byte* const rest = tokens > 0 ? intermediate + intermediate_bytes(ffn_, tokens) : nullptr;
    Call first_call = linear_call({.x = args.x,
                                   .weight = ffn_.gated ? args.gate : args.up,
                                   .bias = args.up_bias,
                                   .out = intermediate,
                                   .workspace = rest,
                                   .x_stride = args.x_stride,
                                   .norm_weight = args.norm_weight,
                                   .epsilon = args.epsilon},
                                  ffn_.hidden, ffn_.intermediate, tokens);
    first_call.pointers[linear::up] = pointer(args.up);
    const LinearArgs second{.x = intermediate,
                            .weight = args.down,
                            .bias = args.down_bias,
                            .residual = args.residual,
                            .out = args.out,
                            .workspace = rest,
                            .residual_stride = args.residual_stride,
                            .out_stride = args.out_stride};
    const Call second_call = linear_call(second, ffn_.intermediate, ffn_.hidden, tokens);
    if (const Status wrong = second_.prepared().check(second_call, {tokens}); wrong != Status::ok)
        return wrong;
    const Status status = first_.prepared().run(stream, first_call, {tokens});
    return status == Status::ok ? second_.prepared().run(stream, second_call, {tokens}) : status;
}

std::int64_t FusedFfnKernel::workspace_bytes(std::int64_t tokens) const {
    const std::int64_t beside = std::max(first_.workspace_bytes(tokens), second_.workspace_bytes(tokens));
    return intermediate_bytes(ffn_, tokens) + beside;
}

}  // namespace hone
