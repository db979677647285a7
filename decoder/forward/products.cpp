#include "decoder/forward/products.h"

namespace hone::decoder {

Product::Product(Runtime& runtime, const Linear& linear, const WeightKinds& weights, bool takes_codes) {
    if (weights.numbers) dense_ = runtime.prepare(linear);
    if (!weights.codes) return;
    coded_ = runtime.prepare(QuantizedLinear{
        .in = linear.in,
        .out = linear.out,
        .max_tokens = linear.max_tokens,
        .dtype = linear.dtype,
        .format = *weights.format.format,
        .group = weights.format.group,
        .zeros = weights.format.zeros,
        .quantized_x = takes_codes,
        .bias = linear.bias,
        .residual = linear.residual,
        .norm = linear.norm,
    });
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
    if (weights.numbers) {
        dense_ = runtime.prepare(FusedFfn{.hidden = m.hidden_size,
                                          .intermediate = m.intermediate_size,
                                          .max_tokens = max_tokens,
                                          .dtype = m.dtype,
                                          .activation = model.activation(),
                                          .gated = m.gated_ffn,
                                          .bias = m.ffn_bias,
                                          .residual = whole,
                                          .norm = whole});
    }
    if (!weights.codes) return;
    coded_ = runtime.prepare(QuantizedFfn{.hidden = m.hidden_size,
                                          .intermediate = m.intermediate_size,
                                          .max_tokens = max_tokens,
                                          .dtype = m.dtype,
                                          .format = *weights.format.format,
                                          .group = weights.format.group,
                                          .zeros = weights.format.zeros,
                                          .quantized_x = takes_codes,
                                          .activation = model.activation(),
                                          .gated = m.gated_ffn,
                                          .bias = m.ffn_bias,
                                          .residual = whole,
                                          .norm = whole});
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
