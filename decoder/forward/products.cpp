#include "decoder/forward/products.h"

#include <optional>
#include <string_view>

#include "kernel_templates/catalog.h"
#include "runtime/operators/runtime_state.h"

namespace hone::decoder {
namespace {

QuantizedLinear coded_linear(const Linear& linear, const checkpoints::WeightFormat& format,
                             bool takes_codes) {
    return {.in = linear.in,
            .out = linear.out,
            .max_tokens = linear.max_tokens,
            .dtype = linear.dtype,
            .format = *format.format,
            .group = format.group,
            .zeros = format.zeros,
            .quantized_x = takes_codes,
            .bias = linear.bias,
            .residual = linear.residual,
            .norm = linear.norm};
}

/// `whole`: with the norm in front and the sum behind.
FusedFfn dense_network(const models::Model& m, Activation activation, std::int64_t max_tokens, bool whole) {
    return {.hidden = m.hidden_size,
            .intermediate = m.intermediate_size,
            .max_tokens = max_tokens,
            .dtype = m.dtype,
            .activation = activation,
            .gated = m.gated_ffn,
            .bias = m.ffn_bias,
            .residual = whole,
            .norm = whole};
}

QuantizedFfn coded_network(const models::Model& m, Activation activation, std::int64_t max_tokens, bool whole,
                           const checkpoints::WeightFormat& format, bool takes_codes) {
    return {.hidden = m.hidden_size,
            .intermediate = m.intermediate_size,
            .max_tokens = max_tokens,
            .dtype = m.dtype,
            .format = *format.format,
            .group = format.group,
            .zeros = format.zeros,
            .quantized_x = takes_codes,
            .activation = activation,
            .gated = m.gated_ffn,
            .bias = m.ffn_bias,
            .residual = whole,
            .norm = whole};
}

bool is_packed(const checkpoints::WeightFormat& format) {
    return format.format == QuantFormat::w4a16 || format.format == QuantFormat::w8a16;
}

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

Product::Product(Runtime& runtime, const Linear& linear, const WeightKinds& weights, bool takes_codes) {
    if (weights.numbers) dense_ = runtime.prepare(linear);
    if (weights.codes) coded_ = runtime.prepare(coded_linear(linear, weights.format, takes_codes));
}

bool Product::normalizes(Runtime& runtime, const Linear& linear, const WeightKinds& weights,
                         std::int64_t tokens) {
    Linear normed = linear;
    normed.norm = true;
    if (weights.numbers && !normalizes_on_the_way(runtime, runtime.explain(normed, tokens))) return false;
    if (!weights.codes) return true;
    return is_packed(weights.format) &&
           normalizes_on_the_way(runtime,
                                 runtime.explain(coded_linear(normed, weights.format, false), tokens));
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

Network::Network(Runtime& runtime, const Description& model, std::int64_t max_tokens,
                 const WeightKinds& weights, bool takes_codes, bool whole) {
    const models::Model& m = model.model;
    if (weights.numbers) dense_ = runtime.prepare(dense_network(m, model.activation(), max_tokens, whole));
    if (weights.codes)
        coded_ = runtime.prepare(
            coded_network(m, model.activation(), max_tokens, whole, weights.format, takes_codes));
}

bool Network::normalizes(Runtime& runtime, const Description& model, const WeightKinds& weights,
                         std::int64_t tokens) {
    const auto first_half = [&](const auto& network) {
        return normalizes_on_the_way(runtime, runtime.explain(network, tokens)[0]);
    };
    const models::Model& m = model.model;
    if (weights.numbers && !first_half(dense_network(m, model.activation(), tokens, true))) return false;
    if (!weights.codes) return true;
    return is_packed(weights.format) &&
           first_half(coded_network(m, model.activation(), tokens, true, weights.format, false));
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

ExpertProduct::ExpertProduct(Runtime& runtime, const ExpertLinear& linear, const WeightKinds& weights) {
    if (!weights.codes) {
        dense_ = runtime.prepare(linear);
        return;
    }
    coded_ = runtime.prepare(QuantizedExpertLinear{
        .in = linear.in,
        .out = linear.out,
        .experts = linear.experts,
        .top_k = linear.top_k,
        .max_tokens = linear.max_tokens,
        .dtype = linear.dtype,
        .format = *weights.format.format,
        .group = weights.format.group,
        .zeros = weights.format.zeros,
        .activation = linear.activation,
        .gated = linear.gated,
        .gather = linear.gather,
        .combine = linear.combine,
    });
}

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
        .out = args.out,
        .workspace = args.workspace,
    };
    return coded_.run(stream, coded, tokens);
}

}  // namespace hone::decoder
