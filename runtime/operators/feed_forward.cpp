#include "runtime/operators/feed_forward.h"

#include "runtime/operators/describe_problem.h"
#include "runtime/operators/linear.h"
#include "runtime/operators/quantized_linear.h"

namespace hone::runtime {
namespace {

/// What both layers of a network have.
QuantizedLinear layer_of(const QuantizedFfn& ffn, std::int64_t in, std::int64_t out) {
    return {.in = in,
            .out = out,
            .max_tokens = ffn.max_tokens,
            .dtype = ffn.dtype,
            .format = ffn.format,
            .group = ffn.group,
            .zeros = ffn.zeros,
            .one_scale = ffn.one_scale,
            .bias = ffn.bias};
}

template <class Ffn>
Problem first_problem(const Ffn& ffn) {
    const Problem problem = problem_of(first_layer(ffn));
    return ffn.gated ? gated(problem) : problem;
}

}  // namespace

Linear first_layer(const FusedFfn& ffn) {
    return {.in = ffn.hidden,
            .out = ffn.intermediate,
            .max_tokens = ffn.max_tokens,
            .dtype = ffn.dtype,
            .activation = ffn.activation,
            .bias = ffn.bias,
            .norm = ffn.norm};
}

Linear second_layer(const FusedFfn& ffn) {
    return {.in = ffn.intermediate,
            .out = ffn.hidden,
            .max_tokens = ffn.max_tokens,
            .dtype = ffn.dtype,
            .bias = ffn.bias,
            .residual = ffn.residual};
}

QuantizedLinear first_layer(const QuantizedFfn& ffn) {
    QuantizedLinear layer = layer_of(ffn, ffn.hidden, ffn.intermediate);
    layer.quantized_x = ffn.quantized_x;
    layer.one_x_scale = ffn.one_x_scale;
    layer.activation = ffn.activation;
    layer.norm = ffn.norm;
    return layer;
}

QuantizedLinear second_layer(const QuantizedFfn& ffn) {
    QuantizedLinear layer = layer_of(ffn, ffn.intermediate, ffn.hidden);
    layer.residual = ffn.residual;
    return layer;
}

Problem first_half(const FusedFfn& ffn) { return first_problem(ffn); }
Problem second_half(const FusedFfn& ffn) { return problem_of(second_layer(ffn)); }
Problem first_half(const QuantizedFfn& ffn) { return first_problem(ffn); }
Problem second_half(const QuantizedFfn& ffn) { return problem_of(second_layer(ffn)); }

}  // namespace hone::runtime
