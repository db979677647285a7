// The pointers of each operator's arguments, with their names. Generated from the declarations,
// kernel_templates/*/operators.py and generate/enums.py, by `./hone generate`.
#pragma once

#include "hone/hone.h"

namespace hone::test {

template <class Visit>
void visit_pointers(AttentionAppendArgs& args, const Visit& visit) {
    visit("q", args.q);
    visit("k", args.k);
    visit("v", args.v);
    visit("out", args.out);
    visit("k_cache", args.k_cache);
    visit("v_cache", args.v_cache);
    visit("cos", args.cos);
    visit("sin", args.sin);
    visit("kv_lengths", args.kv_lengths);
    visit("page_table", args.page_table);
    visit("q_weight", args.q_weight);
    visit("k_weight", args.k_weight);
    visit("workspace", args.workspace);
}

template <class Visit>
void visit_pointers(AttentionArgs& args, const Visit& visit) {
    visit("q", args.q);
    visit("k", args.k);
    visit("v", args.v);
    visit("out", args.out);
    visit("lse", args.lse);
    visit("kv_lengths", args.kv_lengths);
    visit("q_starts", args.q_starts);
    visit("kv_starts", args.kv_starts);
    visit("page_table", args.page_table);
    visit("k_scale", args.k_scale);
    visit("v_scale", args.v_scale);
    visit("sinks", args.sinks);
    visit("workspace", args.workspace);
}

template <class Visit>
void visit_pointers(EmbeddingArgs& args, const Visit& visit) {
    visit("ids", args.ids);
    visit("table", args.table);
    visit("position_ids", args.position_ids);
    visit("position_table", args.position_table);
    visit("out", args.out);
}

template <class Visit>
void visit_pointers(ExpertLinearArgs& args, const Visit& visit) {
    visit("x", args.x);
    visit("starts", args.starts);
    visit("rows", args.rows);
    visit("routing_weights", args.routing_weights);
    visit("weight", args.weight);
    visit("up", args.up);
    visit("bias", args.bias);
    visit("up_bias", args.up_bias);
    visit("out", args.out);
    visit("workspace", args.workspace);
}

template <class Visit>
void visit_pointers(ExpertRoutingArgs& args, const Visit& visit) {
    visit("logits", args.logits);
    visit("routing_weights", args.routing_weights);
    visit("starts", args.starts);
    visit("rows", args.rows);
    visit("workspace", args.workspace);
}

template <class Visit>
void visit_pointers(LinearArgs& args, const Visit& visit) {
    visit("x", args.x);
    visit("weight", args.weight);
    visit("bias", args.bias);
    visit("residual", args.residual);
    visit("out", args.out);
    visit("workspace", args.workspace);
    visit("norm_weight", args.norm_weight);
}

template <class Visit>
void visit_pointers(FusedFfnArgs& args, const Visit& visit) {
    visit("x", args.x);
    visit("gate", args.gate);
    visit("up", args.up);
    visit("up_bias", args.up_bias);
    visit("down", args.down);
    visit("down_bias", args.down_bias);
    visit("residual", args.residual);
    visit("out", args.out);
    visit("workspace", args.workspace);
    visit("norm_weight", args.norm_weight);
}

template <class Visit>
void visit_pointers(NormArgs& args, const Visit& visit) {
    visit("x", args.x);
    visit("residual", args.residual);
    visit("weight", args.weight);
    visit("bias", args.bias);
    visit("out", args.out);
    visit("sum", args.sum);
    visit("scale", args.scale);
}

template <class Visit>
void visit_pointers(QuantizedExpertLinearArgs& args, const Visit& visit) {
    visit("x", args.x);
    visit("starts", args.starts);
    visit("rows", args.rows);
    visit("routing_weights", args.routing_weights);
    visit("weight", args.weight.codes);
    visit("scales", args.weight.scales);
    visit("zeros", args.weight.zeros);
    visit("up", args.up.codes);
    visit("up_scales", args.up.scales);
    visit("up_zeros", args.up.zeros);
    visit("bias", args.bias);
    visit("up_bias", args.up_bias);
    visit("out", args.out);
    visit("workspace", args.workspace);
}

template <class Visit>
void visit_pointers(QuantizedLinearArgs& args, const Visit& visit) {
    visit("x", args.x);
    visit("x_scales", args.x_scales);
    visit("weight", args.weight.codes);
    visit("scales", args.weight.scales);
    visit("zeros", args.weight.zeros);
    visit("bias", args.bias);
    visit("residual", args.residual);
    visit("out", args.out);
    visit("workspace", args.workspace);
    visit("norm_weight", args.norm_weight);
}

template <class Visit>
void visit_pointers(QuantizedFfnArgs& args, const Visit& visit) {
    visit("x", args.x);
    visit("x_scales", args.x_scales);
    visit("gate", args.gate.codes);
    visit("gate_scales", args.gate.scales);
    visit("gate_zeros", args.gate.zeros);
    visit("up", args.up.codes);
    visit("up_scales", args.up.scales);
    visit("up_zeros", args.up.zeros);
    visit("down", args.down.codes);
    visit("down_scales", args.down.scales);
    visit("down_zeros", args.down.zeros);
    visit("up_bias", args.up_bias);
    visit("down_bias", args.down_bias);
    visit("residual", args.residual);
    visit("out", args.out);
    visit("workspace", args.workspace);
    visit("norm_weight", args.norm_weight);
}

template <class Visit>
void visit_pointers(RmsNormBackwardArgs& args, const Visit& visit) {
    visit("dy", args.dy);
    visit("x", args.x);
    visit("weight", args.weight);
    visit("dsum", args.dsum);
    visit("dx", args.dx);
    visit("dweight", args.dweight);
    visit("workspace", args.workspace);
}

template <class Visit>
void visit_pointers(RopeKvAppendArgs& args, const Visit& visit) {
    visit("q", args.q);
    visit("k", args.k);
    visit("v", args.v);
    visit("out", args.out);
    visit("k_cache", args.k_cache);
    visit("v_cache", args.v_cache);
    visit("cos", args.cos);
    visit("sin", args.sin);
    visit("kv_lengths", args.kv_lengths);
    visit("page_table", args.page_table);
    visit("positions", args.positions);
    visit("slots", args.slots);
    visit("k_scale", args.k_scale);
    visit("v_scale", args.v_scale);
    visit("q_weight", args.q_weight);
    visit("k_weight", args.k_weight);
}

template <class Visit>
void visit_pointers(SampleArgs& args, const Visit& visit) {
    visit("logits", args.logits);
    visit("temperature", args.temperature);
    visit("top_k", args.top_k);
    visit("top_p", args.top_p);
    visit("min_p", args.min_p);
    visit("seed", args.seed);
    visit("counter", args.counter);
    visit("out", args.out);
    visit("log_probability", args.log_probability);
}

/// Each operator that is one family's call, by default and with every choice off its default, and the
/// numbers of a call of up to 8 rows.
template <class Visit>
void visit_small_calls(const Visit& visit) {
    visit(Embedding{.hidden = 64, .max_tokens = 8}, EmbeddingArgs{.vocabulary = 100, .position_rows = 100});
    visit(Embedding{.hidden = 64,
                    .max_tokens = 8,
                    .dtype = Dtype::fp16,
                    .index = IndexType::int64,
                    .scale = true,
                    .positions = true},
          EmbeddingArgs{.vocabulary = 100, .position_rows = 100});
    visit(ExpertLinear{.in = 64, .out = 64, .experts = 64, .top_k = 32, .max_tokens = 8}, ExpertLinearArgs{});
    visit(ExpertLinear{.in = 64,
                       .out = 64,
                       .experts = 64,
                       .top_k = 32,
                       .max_tokens = 8,
                       .dtype = Dtype::fp16,
                       .activation = Activation::swiglu_oai,
                       .gated = true,
                       .bias = true,
                       .gather = true,
                       .combine = true},
          ExpertLinearArgs{});
    visit(ExpertRouting{.experts = 64, .top_k = 32, .max_tokens = 8}, ExpertRoutingArgs{});
    visit(ExpertRouting{.experts = 64,
                        .top_k = 32,
                        .max_tokens = 8,
                        .dtype = Dtype::fp16,
                        .renormalize = true},
          ExpertRoutingArgs{});
    visit(Linear{.in = 64, .out = 64, .max_tokens = 8}, LinearArgs{});
    visit(Linear{.in = 64,
                 .out = 64,
                 .max_tokens = 8,
                 .dtype = Dtype::fp16,
                 .activation = Activation::relu,
                 .bias = true,
                 .residual = true,
                 .norm = true},
          LinearArgs{});
    visit(RmsNorm{.hidden = 64, .max_rows = 8}, NormArgs{});
    visit(RmsNorm{.hidden = 64,
                  .max_rows = 8,
                  .dtype = Dtype::fp16,
                  .output = NormOutput::fp8,
                  .residual = true,
                  .unit_offset = true},
          NormArgs{});
    visit(LayerNorm{.hidden = 64, .max_rows = 8}, NormArgs{});
    visit(LayerNorm{.hidden = 64,
                    .max_rows = 8,
                    .dtype = Dtype::fp16,
                    .output = NormOutput::fp8,
                    .residual = true,
                    .bias = false,
                    .unit_offset = true},
          NormArgs{});
    visit(RmsNormBackward{.hidden = 64, .max_rows = 8}, RmsNormBackwardArgs{});
    visit(RmsNormBackward{.hidden = 64, .max_rows = 8, .dtype = Dtype::fp16, .residual = true},
          RmsNormBackwardArgs{});
    visit(Sample{.vocabulary = 64, .max_rows = 8, .softcap = 64}, SampleArgs{});
    visit(Sample{.vocabulary = 64,
                 .max_rows = 8,
                 .dtype = Dtype::fp16,
                 .filters = true,
                 .log_probability = true,
                 .softcap = 64},
          SampleArgs{});
}

}  // namespace hone::test
