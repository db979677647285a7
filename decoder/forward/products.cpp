#include "decoder/forward/products.h"

#include <optional>
#include <string_view>

#include "kernel_templates/catalog.h"
#include "models/step_operators.h"
#include "runtime/operators/runtime_state.h"

namespace hone::decoder {
namespace {

/// Of the kernel that is chosen.
bool normalizes_on_the_way(Runtime& runtime, const Explanation& explanation) {
    const std::optional<Problem> problem = parse_problem(explanation.problem);
    if (!problem) return false;
    const std::optional<Candidate> kernel = parse_candidate(*problem->family, explanation.bucket.candidate);
    return kernel && decoder::normalizes_on_the_way(runtime, *problem, *kernel);
}

}  // namespace

bool normalizes_on_the_way(Runtime& runtime, const Problem& problem, const Candidate& kernel) {
    const std::string_view name = kernel.variant->name;
    const DeviceTraits& traits = runtime::dispatcher_of(runtime).session().traits();
    return (name == "ring" || name == "stream" || name == "walk") &&
           kernel.variant->plan(problem, kernel.config, traits).launch_count == 1;
}

Product::Product(Runtime& runtime, const Linear& linear, const WeightKinds& weights, bool takes_codes)
    : ForEitherWeight(runtime, weights, linear,
                      [&] { return models::with_codes(linear, weights.format, takes_codes); }) {}

bool Product::normalizes(Runtime& runtime, const Linear& linear, const WeightKinds& weights) {
    const auto does = [&](const auto& product) {
        return normalizes_on_the_way(runtime, runtime.explain(product, product.max_tokens));
    };
    return (!weights.numbers || does(linear)) &&
           (!weights.codes || does(models::with_codes(linear, weights.format)));
}

Status Product::run(CUstream_st* stream, const MatrixWeight& weight, LinearArgs args, std::int64_t tokens,
                    const float* x_scales) const {
    if (!weight.is_coded) {
        args.weight = weight.values;
        return dense_.run(stream, args, tokens);
    }
    const QuantizedLinearArgs coded{
        .x = args.x,
        .x_scales = x_scales,
        .weight = weight.packed,
        .bias = args.bias,
        .residual = args.residual,
        .out = args.out,
        .workspace = args.workspace,
        .norm_weight = args.norm_weight,
        .epsilon = args.epsilon,
    };
    return coded_.run(stream, coded, tokens);
}

Network::Network(Runtime& runtime, const FusedFfn& network, const WeightKinds& weights, bool takes_codes)
    : ForEitherWeight(runtime, weights, network,
                      [&] { return models::with_codes(network, weights.format, takes_codes); }) {}

bool Network::normalizes(Runtime& runtime, const FusedFfn& network, const WeightKinds& weights) {
    const auto first_half_does = [&](const auto& ffn) {
        return normalizes_on_the_way(runtime, runtime.explain(ffn, ffn.max_tokens)[0]);
    };
    return (!weights.numbers || first_half_does(network)) &&
           (!weights.codes || first_half_does(models::with_codes(network, weights.format)));
}

Status Network::run(CUstream_st* stream, const LayerWeights& layer, FusedFfnArgs args, std::int64_t tokens,
                    const float* x_scales) const {
    if (!layer.up.is_coded) {
        args.gate = layer.gate.values;
        args.up = layer.up.values;
        args.up_bias = layer.up_bias;
        args.down = layer.down.values;
        args.down_bias = layer.down_bias;
        return dense_.run(stream, args, tokens);
    }
    const QuantizedFfnArgs coded{
        .x = args.x,
        .x_scales = x_scales,
        .gate = layer.gate.packed,
        .up = layer.up.packed,
        .down = layer.down.packed,
        .up_bias = layer.up_bias,
        .down_bias = layer.down_bias,
        .residual = args.residual,
        .out = args.out,
        .workspace = args.workspace,
        .norm_weight = args.norm_weight,
        .epsilon = args.epsilon,
    };
    return coded_.run(stream, coded, tokens);
}

ExpertProduct::ExpertProduct(Runtime& runtime, const ExpertLinear& linear, const WeightKinds& weights)
    : ForEitherWeight(runtime, weights, linear, [&] { return models::with_codes(linear, weights.format); }) {}

Status ExpertProduct::run(CUstream_st* stream, const MatrixWeight& weight, const MatrixWeight& up,
                          ExpertLinearArgs args, std::int64_t tokens) const {
    if (!weight.is_coded) {
        args.weight = weight.values;
        args.up = up.values;
        return dense_.run(stream, args, tokens);
    }
    const QuantizedExpertLinearArgs coded{
        .x = args.x,
        .starts = args.starts,
        .rows = args.rows,
        .routing_weights = args.routing_weights,
        .weight = weight.packed,
        .up = up.packed,
        .bias = args.bias,
        .up_bias = args.up_bias,
        .out = args.out,
        .workspace = args.workspace,
    };
    return coded_.run(stream, coded, tokens);
}

}  // namespace hone::decoder
