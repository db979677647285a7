// QuantizeWeights as problems and calls of families. Generated from
// kernel_templates/quantize_weights/operators.py by `./hone generate`.
#pragma once

#include "hone/quantize_weights.h"
#include "kernel_templates/quantize_weights/quantize_weights.h"
#include "runtime/operators/call_arguments.h"
#include "runtime/operators/scale_dtype.h"

namespace hone::runtime {

/// Problems of the largest call. Each throws std::invalid_argument naming field, value and what is allowed.
[[nodiscard]] Problem quantize_problem(const QuantizeWeights& description);

/// The arguments in the family's order, strides filled in.
[[nodiscard]] inline Call quantize_call(const QuantizeWeights& description, const QuantizeWeightsArgs& args,
                                        std::int64_t out) noexcept {
    Call call;
    call.pointers[quantize_weights::weight] = pointer(args.weight);
    call.pointers[quantize_weights::codes] = pointer(args.codes);
    call.pointers[quantize_weights::scales] = pointer(args.scales);
    call.pointers[quantize_weights::zeros] = pointer(args.zeros);
    call.pointers[quantize_weights::workspace] = pointer(args.workspace);
    call.scalars[quantize_weights::out] = Scalar::of(out);
    call.scalars[quantize_weights::weight_stride] = Scalar::of(stride(args.weight_stride, description.in));
    return call;
}

}  // namespace hone::runtime
