#include "runtime/operators/quantize_weights_problem.h"

#include <fmt/format.h>

#include "kernel_templates/quantize_weights/quantize_weights.h"
#include "runtime/operators/describe_problem.h"
#include "runtime/operators/quantized_linear_problem.h"

namespace hone::runtime {
namespace {

constexpr RowStride strides[] = {{quantize_weights::weight_stride, quantize_weights::weight}};

}  // namespace

Problem quantize_problem(const QuantizeWeights& weights) {
    const bool is_w4 = weights.format == QuantFormat::w4a16;
    return describe_problem(
        "quantize_weights",
        fmt::format("dtype={} format={} group={} zeros={} one_scale={} search={} scale_dtype={} in={}",
                    dtype_name(weights.dtype), format_name(weights.format), weights.group,
                    yes_no(weights.zeros), yes_no(weights.one_scale), yes_no(weights.search),
                    is_w4 ? dtype_name(weights.scale_dtype) : "bf16", weights.in),
        {{"max_out", weights.max_out}});
}

PackedShape packed_shape(const QuantizeWeights& weights, std::int64_t out) {
    return {.format = weights.format,
            .out = out,
            .in = weights.in,
            .group = weights.group,
            .zeros = weights.zeros,
            .one_scale = weights.one_scale,
            .scale_dtype = weights.scale_dtype};
}

std::span<const RowStride> quantize_strides() { return strides; }

}  // namespace hone::runtime
