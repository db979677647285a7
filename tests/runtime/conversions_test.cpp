// From C to C++, member by member. Generated from the declarations, kernel_templates/*/operators.py and
// generate/enums.py, by `./hone generate`.
#include "runtime/c_api/conversions.h"

#include <doctest/doctest.h>

#include <cstdint>

namespace hone::c_api {
namespace {

template <class T = void>
T* at(std::uintptr_t address) {
    return reinterpret_cast<T*>(address);
}

/// Whether a description with a number that is none is refused.
template <class Struct>
bool refuses(Struct given, std::int32_t Struct::*member) {
    given.*member = 77;
    try {
        static_cast<void>(from_c(given));
    } catch (const Error& error) {
        return error.kind() == ErrorKind::bad_argument;
    }
    return false;
}

TEST_CASE("hone_attention_append: every member arrives, and numbers that are none are refused") {
    hone_attention_append c = HONE_ATTENTION_APPEND_INIT;
    c.heads = 2;
    c.kv_heads = 3;
    c.head_dim = 4;
    c.rotary_dim = 5;
    c.max_batch = 6;
    c.max_kv_len = 7;
    c.dtype = HONE_FP16;
    c.style = HONE_ROPE_INTERLEAVED;
    c.norm = 1;
    c.softcap = 1;
    c.window = 8;
    c.page_size = 9;
    c.unit_offset = 1;
    const AttentionAppend description = from_c(c);
    CHECK(description.heads == 2);
    CHECK(description.kv_heads == 3);
    CHECK(description.head_dim == 4);
    CHECK(description.rotary_dim == 5);
    CHECK(description.max_batch == 6);
    CHECK(description.max_kv_len == 7);
    CHECK(description.dtype == Dtype::fp16);
    CHECK(description.style == RopeStyle::interleaved);
    CHECK(description.norm == true);
    CHECK(description.softcap == true);
    CHECK(description.window == 8);
    CHECK(description.page_size == 9);
    CHECK(description.unit_offset == true);
    CHECK(refuses(c, &hone_attention_append::dtype));
    CHECK(refuses(c, &hone_attention_append::style));
    CHECK(refuses(c, &hone_attention_append::norm));
    CHECK(refuses(c, &hone_attention_append::softcap));
    CHECK(refuses(c, &hone_attention_append::unit_offset));
    c.reserved = 1;
    CHECK_THROWS_AS(static_cast<void>(from_c(c)), Error);
}

TEST_CASE("hone_attention: every member arrives, and numbers that are none are refused") {
    hone_attention c = HONE_ATTENTION_INIT;
    c.heads = 2;
    c.kv_heads = 3;
    c.head_dim = 4;
    c.max_batch = 5;
    c.max_q_len = 6;
    c.max_kv_len = 7;
    c.min_q_len = 8;
    c.dtype = HONE_FP16;
    c.kv_dtype = HONE_KV_FP8;
    c.causal = 0;
    c.lengths = 1;
    c.packed = 1;
    c.softcap = 1;
    c.lse = 1;
    c.window = 9;
    c.page_size = 10;
    c.sinks = 1;
    const Attention description = from_c(c);
    CHECK(description.heads == 2);
    CHECK(description.kv_heads == 3);
    CHECK(description.head_dim == 4);
    CHECK(description.max_batch == 5);
    CHECK(description.max_q_len == 6);
    CHECK(description.max_kv_len == 7);
    CHECK(description.min_q_len == 8);
    CHECK(description.dtype == Dtype::fp16);
    CHECK(description.kv_dtype == KvDtype::fp8);
    CHECK(description.causal == false);
    CHECK(description.lengths == true);
    CHECK(description.packed == true);
    CHECK(description.softcap == true);
    CHECK(description.lse == true);
    CHECK(description.window == 9);
    CHECK(description.page_size == 10);
    CHECK(description.sinks == true);
    CHECK(refuses(c, &hone_attention::dtype));
    CHECK(refuses(c, &hone_attention::kv_dtype));
    CHECK(refuses(c, &hone_attention::causal));
    CHECK(refuses(c, &hone_attention::lengths));
    CHECK(refuses(c, &hone_attention::packed));
    CHECK(refuses(c, &hone_attention::softcap));
    CHECK(refuses(c, &hone_attention::lse));
    CHECK(refuses(c, &hone_attention::sinks));
}

TEST_CASE("hone_embedding: every member arrives, and numbers that are none are refused") {
    hone_embedding c = HONE_EMBEDDING_INIT;
    c.hidden = 2;
    c.max_tokens = 3;
    c.dtype = HONE_FP16;
    c.index = HONE_INDEX_INT64;
    c.scale = 1;
    c.positions = 1;
    const Embedding description = from_c(c);
    CHECK(description.hidden == 2);
    CHECK(description.max_tokens == 3);
    CHECK(description.dtype == Dtype::fp16);
    CHECK(description.index == IndexType::int64);
    CHECK(description.scale == true);
    CHECK(description.positions == true);
    CHECK(refuses(c, &hone_embedding::dtype));
    CHECK(refuses(c, &hone_embedding::index));
    CHECK(refuses(c, &hone_embedding::scale));
    CHECK(refuses(c, &hone_embedding::positions));
    c.reserved = 1;
    CHECK_THROWS_AS(static_cast<void>(from_c(c)), Error);
}

TEST_CASE("hone_expert_linear: every member arrives, and numbers that are none are refused") {
    hone_expert_linear c = HONE_EXPERT_LINEAR_INIT;
    c.in = 2;
    c.out = 3;
    c.experts = 4;
    c.top_k = 5;
    c.max_tokens = 6;
    c.dtype = HONE_FP16;
    c.activation = HONE_SWIGLU_OAI;
    c.gated = 1;
    c.bias = 1;
    c.gather = 1;
    c.combine = 1;
    const ExpertLinear description = from_c(c);
    CHECK(description.in == 2);
    CHECK(description.out == 3);
    CHECK(description.experts == 4);
    CHECK(description.top_k == 5);
    CHECK(description.max_tokens == 6);
    CHECK(description.dtype == Dtype::fp16);
    CHECK(description.activation == Activation::swiglu_oai);
    CHECK(description.gated == true);
    CHECK(description.bias == true);
    CHECK(description.gather == true);
    CHECK(description.combine == true);
    CHECK(refuses(c, &hone_expert_linear::dtype));
    CHECK(refuses(c, &hone_expert_linear::activation));
    CHECK(refuses(c, &hone_expert_linear::gated));
    CHECK(refuses(c, &hone_expert_linear::bias));
    CHECK(refuses(c, &hone_expert_linear::gather));
    CHECK(refuses(c, &hone_expert_linear::combine));
    c.reserved = 1;
    CHECK_THROWS_AS(static_cast<void>(from_c(c)), Error);
}

TEST_CASE("hone_expert_routing: every member arrives, and numbers that are none are refused") {
    hone_expert_routing c = HONE_EXPERT_ROUTING_INIT;
    c.experts = 2;
    c.top_k = 3;
    c.max_tokens = 4;
    c.dtype = HONE_FP16;
    c.renormalize = 1;
    const ExpertRouting description = from_c(c);
    CHECK(description.experts == 2);
    CHECK(description.top_k == 3);
    CHECK(description.max_tokens == 4);
    CHECK(description.dtype == Dtype::fp16);
    CHECK(description.renormalize == true);
    CHECK(refuses(c, &hone_expert_routing::dtype));
    CHECK(refuses(c, &hone_expert_routing::renormalize));
    c.reserved = 1;
    CHECK_THROWS_AS(static_cast<void>(from_c(c)), Error);
}

TEST_CASE("hone_linear: every member arrives, and numbers that are none are refused") {
    hone_linear c = HONE_LINEAR_INIT;
    c.in = 2;
    c.out = 3;
    c.max_tokens = 4;
    c.dtype = HONE_FP16;
    c.activation = HONE_RELU;
    c.bias = 1;
    c.residual = 1;
    c.norm = 1;
    const Linear description = from_c(c);
    CHECK(description.in == 2);
    CHECK(description.out == 3);
    CHECK(description.max_tokens == 4);
    CHECK(description.dtype == Dtype::fp16);
    CHECK(description.activation == Activation::relu);
    CHECK(description.bias == true);
    CHECK(description.residual == true);
    CHECK(description.norm == true);
    CHECK(refuses(c, &hone_linear::dtype));
    CHECK(refuses(c, &hone_linear::activation));
    CHECK(refuses(c, &hone_linear::bias));
    CHECK(refuses(c, &hone_linear::residual));
    CHECK(refuses(c, &hone_linear::norm));
}

TEST_CASE("hone_fused_ffn: every member arrives, and numbers that are none are refused") {
    hone_fused_ffn c = HONE_FUSED_FFN_INIT;
    c.hidden = 2;
    c.intermediate = 3;
    c.max_tokens = 4;
    c.dtype = HONE_FP16;
    c.activation = HONE_RELU;
    c.gated = 0;
    c.bias = 1;
    c.residual = 1;
    c.norm = 1;
    const FusedFfn description = from_c(c);
    CHECK(description.hidden == 2);
    CHECK(description.intermediate == 3);
    CHECK(description.max_tokens == 4);
    CHECK(description.dtype == Dtype::fp16);
    CHECK(description.activation == Activation::relu);
    CHECK(description.gated == false);
    CHECK(description.bias == true);
    CHECK(description.residual == true);
    CHECK(description.norm == true);
    CHECK(refuses(c, &hone_fused_ffn::dtype));
    CHECK(refuses(c, &hone_fused_ffn::activation));
    CHECK(refuses(c, &hone_fused_ffn::gated));
    CHECK(refuses(c, &hone_fused_ffn::bias));
    CHECK(refuses(c, &hone_fused_ffn::residual));
    CHECK(refuses(c, &hone_fused_ffn::norm));
}

TEST_CASE("hone_rms_norm: every member arrives, and numbers that are none are refused") {
    hone_rms_norm c = HONE_RMS_NORM_INIT;
    c.hidden = 2;
    c.max_rows = 3;
    c.dtype = HONE_FP16;
    c.output = HONE_OUTPUT_FP8;
    c.residual = 1;
    c.unit_offset = 1;
    const RmsNorm description = from_c(c);
    CHECK(description.hidden == 2);
    CHECK(description.max_rows == 3);
    CHECK(description.dtype == Dtype::fp16);
    CHECK(description.output == NormOutput::fp8);
    CHECK(description.residual == true);
    CHECK(description.unit_offset == true);
    CHECK(refuses(c, &hone_rms_norm::dtype));
    CHECK(refuses(c, &hone_rms_norm::output));
    CHECK(refuses(c, &hone_rms_norm::residual));
    CHECK(refuses(c, &hone_rms_norm::unit_offset));
}

TEST_CASE("hone_layer_norm: every member arrives, and numbers that are none are refused") {
    hone_layer_norm c = HONE_LAYER_NORM_INIT;
    c.hidden = 2;
    c.max_rows = 3;
    c.dtype = HONE_FP16;
    c.output = HONE_OUTPUT_FP8;
    c.residual = 1;
    c.bias = 0;
    c.unit_offset = 1;
    const LayerNorm description = from_c(c);
    CHECK(description.hidden == 2);
    CHECK(description.max_rows == 3);
    CHECK(description.dtype == Dtype::fp16);
    CHECK(description.output == NormOutput::fp8);
    CHECK(description.residual == true);
    CHECK(description.bias == false);
    CHECK(description.unit_offset == true);
    CHECK(refuses(c, &hone_layer_norm::dtype));
    CHECK(refuses(c, &hone_layer_norm::output));
    CHECK(refuses(c, &hone_layer_norm::residual));
    CHECK(refuses(c, &hone_layer_norm::bias));
    CHECK(refuses(c, &hone_layer_norm::unit_offset));
    c.reserved = 1;
    CHECK_THROWS_AS(static_cast<void>(from_c(c)), Error);
}

TEST_CASE("hone_quantize_weights: every member arrives, and numbers that are none are refused") {
    hone_quantize_weights c = HONE_QUANTIZE_WEIGHTS_INIT;
    c.in = 2;
    c.max_out = 3;
    c.dtype = HONE_FP16;
    c.format = HONE_QUANT_FP8;
    c.group = 4;
    c.zeros = 1;
    c.one_scale = 1;
    c.scale_dtype = HONE_FP16;
    c.search = 0;
    const QuantizeWeights description = from_c(c);
    CHECK(description.in == 2);
    CHECK(description.max_out == 3);
    CHECK(description.dtype == Dtype::fp16);
    CHECK(description.format == QuantFormat::fp8);
    CHECK(description.group == 4);
    CHECK(description.zeros == true);
    CHECK(description.one_scale == true);
    CHECK(description.scale_dtype == Dtype::fp16);
    CHECK(description.search == false);
    CHECK(refuses(c, &hone_quantize_weights::dtype));
    CHECK(refuses(c, &hone_quantize_weights::format));
    CHECK(refuses(c, &hone_quantize_weights::zeros));
    CHECK(refuses(c, &hone_quantize_weights::one_scale));
    CHECK(refuses(c, &hone_quantize_weights::scale_dtype));
    CHECK(refuses(c, &hone_quantize_weights::search));
    c.reserved = 1;
    CHECK_THROWS_AS(static_cast<void>(from_c(c)), Error);
}

TEST_CASE("hone_quantized_expert_linear: every member arrives, and numbers that are none are refused") {
    hone_quantized_expert_linear c = HONE_QUANTIZED_EXPERT_LINEAR_INIT;
    c.in = 2;
    c.out = 3;
    c.experts = 4;
    c.top_k = 5;
    c.max_tokens = 6;
    c.dtype = HONE_FP16;
    c.format = HONE_QUANT_FP8;
    c.group = 7;
    c.zeros = 1;
    c.activation = HONE_SWIGLU_OAI;
    c.gated = 1;
    c.bias = 1;
    c.gather = 1;
    c.combine = 1;
    const QuantizedExpertLinear description = from_c(c);
    CHECK(description.in == 2);
    CHECK(description.out == 3);
    CHECK(description.experts == 4);
    CHECK(description.top_k == 5);
    CHECK(description.max_tokens == 6);
    CHECK(description.dtype == Dtype::fp16);
    CHECK(description.format == QuantFormat::fp8);
    CHECK(description.group == 7);
    CHECK(description.zeros == true);
    CHECK(description.activation == Activation::swiglu_oai);
    CHECK(description.gated == true);
    CHECK(description.bias == true);
    CHECK(description.gather == true);
    CHECK(description.combine == true);
    CHECK(refuses(c, &hone_quantized_expert_linear::dtype));
    CHECK(refuses(c, &hone_quantized_expert_linear::format));
    CHECK(refuses(c, &hone_quantized_expert_linear::zeros));
    CHECK(refuses(c, &hone_quantized_expert_linear::activation));
    CHECK(refuses(c, &hone_quantized_expert_linear::gated));
    CHECK(refuses(c, &hone_quantized_expert_linear::bias));
    CHECK(refuses(c, &hone_quantized_expert_linear::gather));
    CHECK(refuses(c, &hone_quantized_expert_linear::combine));
    c.reserved = 1;
    CHECK_THROWS_AS(static_cast<void>(from_c(c)), Error);
}

TEST_CASE("hone_quantized_linear: every member arrives, and numbers that are none are refused") {
    hone_quantized_linear c = HONE_QUANTIZED_LINEAR_INIT;
    c.in = 2;
    c.out = 3;
    c.max_tokens = 4;
    c.dtype = HONE_FP16;
    c.format = HONE_QUANT_FP8;
    c.group = 5;
    c.zeros = 1;
    c.one_scale = 1;
    c.quantized_x = 1;
    c.one_x_scale = 1;
    c.activation = HONE_RELU;
    c.bias = 1;
    c.residual = 1;
    c.norm = 1;
    const QuantizedLinear description = from_c(c);
    CHECK(description.in == 2);
    CHECK(description.out == 3);
    CHECK(description.max_tokens == 4);
    CHECK(description.dtype == Dtype::fp16);
    CHECK(description.format == QuantFormat::fp8);
    CHECK(description.group == 5);
    CHECK(description.zeros == true);
    CHECK(description.one_scale == true);
    CHECK(description.quantized_x == true);
    CHECK(description.one_x_scale == true);
    CHECK(description.activation == Activation::relu);
    CHECK(description.bias == true);
    CHECK(description.residual == true);
    CHECK(description.norm == true);
    CHECK(refuses(c, &hone_quantized_linear::dtype));
    CHECK(refuses(c, &hone_quantized_linear::format));
    CHECK(refuses(c, &hone_quantized_linear::zeros));
    CHECK(refuses(c, &hone_quantized_linear::one_scale));
    CHECK(refuses(c, &hone_quantized_linear::quantized_x));
    CHECK(refuses(c, &hone_quantized_linear::one_x_scale));
    CHECK(refuses(c, &hone_quantized_linear::activation));
    CHECK(refuses(c, &hone_quantized_linear::bias));
    CHECK(refuses(c, &hone_quantized_linear::residual));
    CHECK(refuses(c, &hone_quantized_linear::norm));
    c.reserved = 1;
    CHECK_THROWS_AS(static_cast<void>(from_c(c)), Error);
}

TEST_CASE("hone_quantized_ffn: every member arrives, and numbers that are none are refused") {
    hone_quantized_ffn c = HONE_QUANTIZED_FFN_INIT;
    c.hidden = 2;
    c.intermediate = 3;
    c.max_tokens = 4;
    c.dtype = HONE_FP16;
    c.format = HONE_QUANT_FP8;
    c.group = 5;
    c.zeros = 1;
    c.one_scale = 1;
    c.quantized_x = 1;
    c.one_x_scale = 1;
    c.activation = HONE_RELU;
    c.gated = 0;
    c.bias = 1;
    c.residual = 1;
    c.norm = 1;
    const QuantizedFfn description = from_c(c);
    CHECK(description.hidden == 2);
    CHECK(description.intermediate == 3);
    CHECK(description.max_tokens == 4);
    CHECK(description.dtype == Dtype::fp16);
    CHECK(description.format == QuantFormat::fp8);
    CHECK(description.group == 5);
    CHECK(description.zeros == true);
    CHECK(description.one_scale == true);
    CHECK(description.quantized_x == true);
    CHECK(description.one_x_scale == true);
    CHECK(description.activation == Activation::relu);
    CHECK(description.gated == false);
    CHECK(description.bias == true);
    CHECK(description.residual == true);
    CHECK(description.norm == true);
    CHECK(refuses(c, &hone_quantized_ffn::dtype));
    CHECK(refuses(c, &hone_quantized_ffn::format));
    CHECK(refuses(c, &hone_quantized_ffn::zeros));
    CHECK(refuses(c, &hone_quantized_ffn::one_scale));
    CHECK(refuses(c, &hone_quantized_ffn::quantized_x));
    CHECK(refuses(c, &hone_quantized_ffn::one_x_scale));
    CHECK(refuses(c, &hone_quantized_ffn::activation));
    CHECK(refuses(c, &hone_quantized_ffn::gated));
    CHECK(refuses(c, &hone_quantized_ffn::bias));
    CHECK(refuses(c, &hone_quantized_ffn::residual));
    CHECK(refuses(c, &hone_quantized_ffn::norm));
}

TEST_CASE("hone_rms_norm_backward: every member arrives, and numbers that are none are refused") {
    hone_rms_norm_backward c = HONE_RMS_NORM_BACKWARD_INIT;
    c.hidden = 2;
    c.max_rows = 3;
    c.dtype = HONE_FP16;
    c.residual = 1;
    const RmsNormBackward description = from_c(c);
    CHECK(description.hidden == 2);
    CHECK(description.max_rows == 3);
    CHECK(description.dtype == Dtype::fp16);
    CHECK(description.residual == true);
    CHECK(refuses(c, &hone_rms_norm_backward::dtype));
    CHECK(refuses(c, &hone_rms_norm_backward::residual));
    c.reserved = 1;
    CHECK_THROWS_AS(static_cast<void>(from_c(c)), Error);
}

TEST_CASE("hone_rope_kv_append: every member arrives, and numbers that are none are refused") {
    hone_rope_kv_append c = HONE_ROPE_KV_APPEND_INIT;
    c.heads = 2;
    c.kv_heads = 3;
    c.head_dim = 4;
    c.rotary_dim = 5;
    c.max_tokens = 6;
    c.dtype = HONE_FP16;
    c.kv_dtype = HONE_KV_FP8;
    c.style = HONE_ROPE_INTERLEAVED;
    c.norm = 1;
    c.slots = 1;
    c.page_size = 7;
    c.unit_offset = 1;
    const RopeKvAppend description = from_c(c);
    CHECK(description.heads == 2);
    CHECK(description.kv_heads == 3);
    CHECK(description.head_dim == 4);
    CHECK(description.rotary_dim == 5);
    CHECK(description.max_tokens == 6);
    CHECK(description.dtype == Dtype::fp16);
    CHECK(description.kv_dtype == KvDtype::fp8);
    CHECK(description.style == RopeStyle::interleaved);
    CHECK(description.norm == true);
    CHECK(description.slots == true);
    CHECK(description.page_size == 7);
    CHECK(description.unit_offset == true);
    CHECK(refuses(c, &hone_rope_kv_append::dtype));
    CHECK(refuses(c, &hone_rope_kv_append::kv_dtype));
    CHECK(refuses(c, &hone_rope_kv_append::style));
    CHECK(refuses(c, &hone_rope_kv_append::norm));
    CHECK(refuses(c, &hone_rope_kv_append::slots));
    CHECK(refuses(c, &hone_rope_kv_append::unit_offset));
}

TEST_CASE("hone_sample: every member arrives, and numbers that are none are refused") {
    hone_sample c = HONE_SAMPLE_INIT;
    c.vocabulary = 2;
    c.max_rows = 3;
    c.dtype = HONE_FP16;
    c.filters = 1;
    c.log_probability = 1;
    c.softcap = 4;
    const Sample description = from_c(c);
    CHECK(description.vocabulary == 2);
    CHECK(description.max_rows == 3);
    CHECK(description.dtype == Dtype::fp16);
    CHECK(description.filters == true);
    CHECK(description.log_probability == true);
    CHECK(description.softcap == 4);
    CHECK(refuses(c, &hone_sample::dtype));
    CHECK(refuses(c, &hone_sample::filters));
    CHECK(refuses(c, &hone_sample::log_probability));
}

TEST_CASE("hone_attention_append_args: every member arrives") {
    hone_attention_append_args c = HONE_ATTENTION_APPEND_ARGS_INIT;
    c.q = at(2);
    c.k = at(3);
    c.v = at(4);
    c.out = at(5);
    c.k_cache = at(6);
    c.v_cache = at(7);
    c.cos = at<float>(8);
    c.sin = at<float>(9);
    c.kv_lengths = at<int32_t>(10);
    c.page_table = at<int32_t>(11);
    c.q_weight = at(12);
    c.k_weight = at(13);
    c.workspace = at(14);
    c.q_token_stride = 15;
    c.q_head_stride = 16;
    c.k_token_stride = 17;
    c.k_head_stride = 18;
    c.v_token_stride = 19;
    c.v_head_stride = 20;
    c.out_token_stride = 21;
    c.out_head_stride = 22;
    c.cache_batch_stride = 23;
    c.cache_token_stride = 24;
    c.cache_head_stride = 25;
    c.page_table_stride = 26;
    c.pool_pages = 27;
    c.table_rows = 28;
    c.scale = 29.5F;
    c.softcap = 30.5F;
    c.epsilon = 31.5F;
    const AttentionAppendArgs args = from_c(c);
    CHECK(args.q == at(2));
    CHECK(args.k == at(3));
    CHECK(args.v == at(4));
    CHECK(args.out == at(5));
    CHECK(args.k_cache == at(6));
    CHECK(args.v_cache == at(7));
    CHECK(args.cos == at<float>(8));
    CHECK(args.sin == at<float>(9));
    CHECK(args.kv_lengths == at<int32_t>(10));
    CHECK(args.page_table == at<int32_t>(11));
    CHECK(args.q_weight == at(12));
    CHECK(args.k_weight == at(13));
    CHECK(args.workspace == at(14));
    CHECK(args.q_strides.token == 15);
    CHECK(args.q_strides.head == 16);
    CHECK(args.k_strides.token == 17);
    CHECK(args.k_strides.head == 18);
    CHECK(args.v_strides.token == 19);
    CHECK(args.v_strides.head == 20);
    CHECK(args.out_strides.token == 21);
    CHECK(args.out_strides.head == 22);
    CHECK(args.cache_strides.batch == 23);
    CHECK(args.cache_strides.token == 24);
    CHECK(args.cache_strides.head == 25);
    CHECK(args.page_table_stride == 26);
    CHECK(args.pool_pages == 27);
    CHECK(args.table_rows == 28);
    CHECK(args.scale == 29.5F);
    CHECK(args.softcap == 30.5F);
    CHECK(args.epsilon == 31.5F);
}

TEST_CASE("hone_attention_args: every member arrives") {
    hone_attention_args c = HONE_ATTENTION_ARGS_INIT;
    c.q = at(2);
    c.k = at(3);
    c.v = at(4);
    c.out = at(5);
    c.lse = at<float>(6);
    c.kv_lengths = at<int32_t>(7);
    c.q_starts = at<int32_t>(8);
    c.kv_starts = at<int32_t>(9);
    c.page_table = at<int32_t>(10);
    c.k_scale = at<float>(11);
    c.v_scale = at<float>(12);
    c.sinks = at<float>(13);
    c.workspace = at(14);
    c.q_batch_stride = 15;
    c.q_token_stride = 16;
    c.q_head_stride = 17;
    c.k_batch_stride = 18;
    c.k_token_stride = 19;
    c.k_head_stride = 20;
    c.v_batch_stride = 21;
    c.v_token_stride = 22;
    c.v_head_stride = 23;
    c.out_batch_stride = 24;
    c.out_token_stride = 25;
    c.out_head_stride = 26;
    c.page_table_stride = 27;
    c.pool_pages = 28;
    c.q_tokens = 29;
    c.kv_tokens = 30;
    c.prompts = 31;
    c.scale = 32.5F;
    c.softcap = 33.5F;
    const AttentionArgs args = from_c(c);
    CHECK(args.q == at(2));
    CHECK(args.k == at(3));
    CHECK(args.v == at(4));
    CHECK(args.out == at(5));
    CHECK(args.lse == at<float>(6));
    CHECK(args.kv_lengths == at<int32_t>(7));
    CHECK(args.q_starts == at<int32_t>(8));
    CHECK(args.kv_starts == at<int32_t>(9));
    CHECK(args.page_table == at<int32_t>(10));
    CHECK(args.k_scale == at<float>(11));
    CHECK(args.v_scale == at<float>(12));
    CHECK(args.sinks == at<float>(13));
    CHECK(args.workspace == at(14));
    CHECK(args.q_strides.batch == 15);
    CHECK(args.q_strides.token == 16);
    CHECK(args.q_strides.head == 17);
    CHECK(args.k_strides.batch == 18);
    CHECK(args.k_strides.token == 19);
    CHECK(args.k_strides.head == 20);
    CHECK(args.v_strides.batch == 21);
    CHECK(args.v_strides.token == 22);
    CHECK(args.v_strides.head == 23);
    CHECK(args.out_strides.batch == 24);
    CHECK(args.out_strides.token == 25);
    CHECK(args.out_strides.head == 26);
    CHECK(args.page_table_stride == 27);
    CHECK(args.pool_pages == 28);
    CHECK(args.q_tokens == 29);
    CHECK(args.kv_tokens == 30);
    CHECK(args.prompts == 31);
    CHECK(args.scale == 32.5F);
    CHECK(args.softcap == 33.5F);
}

TEST_CASE("hone_embedding_args: every member arrives") {
    hone_embedding_args c = HONE_EMBEDDING_ARGS_INIT;
    c.ids = at(2);
    c.table = at(3);
    c.position_ids = at(4);
    c.position_table = at(5);
    c.out = at(6);
    c.vocabulary = 7;
    c.position_rows = 8;
    c.table_stride = 9;
    c.position_table_stride = 10;
    c.out_stride = 11;
    c.scale = 12.5F;
    const EmbeddingArgs args = from_c(c);
    CHECK(args.ids == at(2));
    CHECK(args.table == at(3));
    CHECK(args.position_ids == at(4));
    CHECK(args.position_table == at(5));
    CHECK(args.out == at(6));
    CHECK(args.vocabulary == 7);
    CHECK(args.position_rows == 8);
    CHECK(args.table_stride == 9);
    CHECK(args.position_table_stride == 10);
    CHECK(args.out_stride == 11);
    CHECK(args.scale == 12.5F);
}

TEST_CASE("hone_expert_linear_args: every member arrives") {
    hone_expert_linear_args c = HONE_EXPERT_LINEAR_ARGS_INIT;
    c.x = at(2);
    c.starts = at<int32_t>(3);
    c.rows = at<int32_t>(4);
    c.routing_weights = at<float>(5);
    c.weight = at(6);
    c.up = at(7);
    c.bias = at(8);
    c.up_bias = at(9);
    c.out = at(10);
    c.workspace = at(11);
    c.x_stride = 12;
    c.out_stride = 13;
    const ExpertLinearArgs args = from_c(c);
    CHECK(args.x == at(2));
    CHECK(args.starts == at<int32_t>(3));
    CHECK(args.rows == at<int32_t>(4));
    CHECK(args.routing_weights == at<float>(5));
    CHECK(args.weight == at(6));
    CHECK(args.up == at(7));
    CHECK(args.bias == at(8));
    CHECK(args.up_bias == at(9));
    CHECK(args.out == at(10));
    CHECK(args.workspace == at(11));
    CHECK(args.x_stride == 12);
    CHECK(args.out_stride == 13);
}

TEST_CASE("hone_expert_routing_args: every member arrives") {
    hone_expert_routing_args c = HONE_EXPERT_ROUTING_ARGS_INIT;
    c.logits = at(2);
    c.routing_weights = at<float>(3);
    c.starts = at<int32_t>(4);
    c.rows = at<int32_t>(5);
    c.workspace = at(6);
    c.logits_stride = 7;
    const ExpertRoutingArgs args = from_c(c);
    CHECK(args.logits == at(2));
    CHECK(args.routing_weights == at<float>(3));
    CHECK(args.starts == at<int32_t>(4));
    CHECK(args.rows == at<int32_t>(5));
    CHECK(args.workspace == at(6));
    CHECK(args.logits_stride == 7);
}

TEST_CASE("hone_linear_args: every member arrives") {
    hone_linear_args c = HONE_LINEAR_ARGS_INIT;
    c.x = at(2);
    c.weight = at(3);
    c.bias = at(4);
    c.residual = at(5);
    c.out = at(6);
    c.workspace = at(7);
    c.x_stride = 8;
    c.weight_stride = 9;
    c.residual_stride = 10;
    c.out_stride = 11;
    c.norm_weight = at(12);
    c.epsilon = 13.5F;
    const LinearArgs args = from_c(c);
    CHECK(args.x == at(2));
    CHECK(args.weight == at(3));
    CHECK(args.bias == at(4));
    CHECK(args.residual == at(5));
    CHECK(args.out == at(6));
    CHECK(args.workspace == at(7));
    CHECK(args.x_stride == 8);
    CHECK(args.weight_stride == 9);
    CHECK(args.residual_stride == 10);
    CHECK(args.out_stride == 11);
    CHECK(args.norm_weight == at(12));
    CHECK(args.epsilon == 13.5F);
}

TEST_CASE("hone_fused_ffn_args: every member arrives") {
    hone_fused_ffn_args c = HONE_FUSED_FFN_ARGS_INIT;
    c.x = at(2);
    c.gate = at(3);
    c.up = at(4);
    c.up_bias = at(5);
    c.down = at(6);
    c.down_bias = at(7);
    c.residual = at(8);
    c.out = at(9);
    c.workspace = at(10);
    c.x_stride = 11;
    c.residual_stride = 12;
    c.out_stride = 13;
    c.norm_weight = at(14);
    c.epsilon = 15.5F;
    const FusedFfnArgs args = from_c(c);
    CHECK(args.x == at(2));
    CHECK(args.gate == at(3));
    CHECK(args.up == at(4));
    CHECK(args.up_bias == at(5));
    CHECK(args.down == at(6));
    CHECK(args.down_bias == at(7));
    CHECK(args.residual == at(8));
    CHECK(args.out == at(9));
    CHECK(args.workspace == at(10));
    CHECK(args.x_stride == 11);
    CHECK(args.residual_stride == 12);
    CHECK(args.out_stride == 13);
    CHECK(args.norm_weight == at(14));
    CHECK(args.epsilon == 15.5F);
}

TEST_CASE("hone_norm_args: every member arrives") {
    hone_norm_args c = HONE_NORM_ARGS_INIT;
    c.x = at(2);
    c.residual = at(3);
    c.weight = at(4);
    c.bias = at(5);
    c.out = at(6);
    c.sum = at(7);
    c.scale = at<float>(8);
    c.x_stride = 9;
    c.residual_stride = 10;
    c.out_stride = 11;
    c.sum_stride = 12;
    c.epsilon = 13.5F;
    const NormArgs args = from_c(c);
    CHECK(args.x == at(2));
    CHECK(args.residual == at(3));
    CHECK(args.weight == at(4));
    CHECK(args.bias == at(5));
    CHECK(args.out == at(6));
    CHECK(args.sum == at(7));
    CHECK(args.scale == at<float>(8));
    CHECK(args.x_stride == 9);
    CHECK(args.residual_stride == 10);
    CHECK(args.out_stride == 11);
    CHECK(args.sum_stride == 12);
    CHECK(args.epsilon == 13.5F);
}

TEST_CASE("hone_quantize_weights_args: every member arrives") {
    hone_quantize_weights_args c = HONE_QUANTIZE_WEIGHTS_ARGS_INIT;
    c.weight = at(2);
    c.codes = at(3);
    c.scales = at(4);
    c.zeros = at(5);
    c.workspace = at(6);
    c.weight_stride = 7;
    const QuantizeWeightsArgs args = from_c(c);
    CHECK(args.weight == at(2));
    CHECK(args.codes == at(3));
    CHECK(args.scales == at(4));
    CHECK(args.zeros == at(5));
    CHECK(args.workspace == at(6));
    CHECK(args.weight_stride == 7);
}

TEST_CASE("hone_quantized_expert_linear_args: every member arrives") {
    hone_quantized_expert_linear_args c = HONE_QUANTIZED_EXPERT_LINEAR_ARGS_INIT;
    c.x = at(2);
    c.starts = at<int32_t>(3);
    c.rows = at<int32_t>(4);
    c.routing_weights = at<float>(5);
    c.weight = at(6);
    c.scales = at(7);
    c.zeros = at(8);
    c.up = at(9);
    c.up_scales = at(10);
    c.up_zeros = at(11);
    c.bias = at(12);
    c.up_bias = at(13);
    c.out = at(14);
    c.workspace = at(15);
    c.x_stride = 16;
    c.out_stride = 17;
    const QuantizedExpertLinearArgs args = from_c(c);
    CHECK(args.x == at(2));
    CHECK(args.starts == at<int32_t>(3));
    CHECK(args.rows == at<int32_t>(4));
    CHECK(args.routing_weights == at<float>(5));
    CHECK(args.weight.codes == at(6));
    CHECK(args.weight.scales == at(7));
    CHECK(args.weight.zeros == at(8));
    CHECK(args.up.codes == at(9));
    CHECK(args.up.scales == at(10));
    CHECK(args.up.zeros == at(11));
    CHECK(args.bias == at(12));
    CHECK(args.up_bias == at(13));
    CHECK(args.out == at(14));
    CHECK(args.workspace == at(15));
    CHECK(args.x_stride == 16);
    CHECK(args.out_stride == 17);
}

TEST_CASE("hone_quantized_linear_args: every member arrives") {
    hone_quantized_linear_args c = HONE_QUANTIZED_LINEAR_ARGS_INIT;
    c.x = at(2);
    c.x_scales = at<float>(3);
    c.weight = at(4);
    c.scales = at(5);
    c.zeros = at(6);
    c.bias = at(7);
    c.residual = at(8);
    c.out = at(9);
    c.workspace = at(10);
    c.x_stride = 11;
    c.x_scale_stride = 12;
    c.weight_stride = 13;
    c.residual_stride = 14;
    c.out_stride = 15;
    c.norm_weight = at(16);
    c.epsilon = 17.5F;
    const QuantizedLinearArgs args = from_c(c);
    CHECK(args.x == at(2));
    CHECK(args.x_scales == at<float>(3));
    CHECK(args.weight.codes == at(4));
    CHECK(args.weight.scales == at(5));
    CHECK(args.weight.zeros == at(6));
    CHECK(args.bias == at(7));
    CHECK(args.residual == at(8));
    CHECK(args.out == at(9));
    CHECK(args.workspace == at(10));
    CHECK(args.x_stride == 11);
    CHECK(args.x_scale_stride == 12);
    CHECK(args.weight_stride == 13);
    CHECK(args.residual_stride == 14);
    CHECK(args.out_stride == 15);
    CHECK(args.norm_weight == at(16));
    CHECK(args.epsilon == 17.5F);
}

TEST_CASE("hone_quantized_ffn_args: every member arrives") {
    hone_quantized_ffn_args c = HONE_QUANTIZED_FFN_ARGS_INIT;
    c.x = at(2);
    c.x_scales = at<float>(3);
    c.gate = at(4);
    c.gate_scales = at(5);
    c.gate_zeros = at(6);
    c.up = at(7);
    c.up_scales = at(8);
    c.up_zeros = at(9);
    c.down = at(10);
    c.down_scales = at(11);
    c.down_zeros = at(12);
    c.up_bias = at(13);
    c.down_bias = at(14);
    c.residual = at(15);
    c.out = at(16);
    c.workspace = at(17);
    c.x_stride = 18;
    c.x_scale_stride = 19;
    c.residual_stride = 20;
    c.out_stride = 21;
    c.norm_weight = at(22);
    c.epsilon = 23.5F;
    const QuantizedFfnArgs args = from_c(c);
    CHECK(args.x == at(2));
    CHECK(args.x_scales == at<float>(3));
    CHECK(args.gate.codes == at(4));
    CHECK(args.gate.scales == at(5));
    CHECK(args.gate.zeros == at(6));
    CHECK(args.up.codes == at(7));
    CHECK(args.up.scales == at(8));
    CHECK(args.up.zeros == at(9));
    CHECK(args.down.codes == at(10));
    CHECK(args.down.scales == at(11));
    CHECK(args.down.zeros == at(12));
    CHECK(args.up_bias == at(13));
    CHECK(args.down_bias == at(14));
    CHECK(args.residual == at(15));
    CHECK(args.out == at(16));
    CHECK(args.workspace == at(17));
    CHECK(args.x_stride == 18);
    CHECK(args.x_scale_stride == 19);
    CHECK(args.residual_stride == 20);
    CHECK(args.out_stride == 21);
    CHECK(args.norm_weight == at(22));
    CHECK(args.epsilon == 23.5F);
}

TEST_CASE("hone_rms_norm_backward_args: every member arrives") {
    hone_rms_norm_backward_args c = HONE_RMS_NORM_BACKWARD_ARGS_INIT;
    c.dy = at(2);
    c.x = at(3);
    c.weight = at(4);
    c.dsum = at(5);
    c.dx = at(6);
    c.dweight = at(7);
    c.workspace = at(8);
    c.dy_stride = 9;
    c.x_stride = 10;
    c.dsum_stride = 11;
    c.dx_stride = 12;
    c.epsilon = 13.5F;
    const RmsNormBackwardArgs args = from_c(c);
    CHECK(args.dy == at(2));
    CHECK(args.x == at(3));
    CHECK(args.weight == at(4));
    CHECK(args.dsum == at(5));
    CHECK(args.dx == at(6));
    CHECK(args.dweight == at(7));
    CHECK(args.workspace == at(8));
    CHECK(args.dy_stride == 9);
    CHECK(args.x_stride == 10);
    CHECK(args.dsum_stride == 11);
    CHECK(args.dx_stride == 12);
    CHECK(args.epsilon == 13.5F);
}

TEST_CASE("hone_rope_kv_append_args: every member arrives") {
    hone_rope_kv_append_args c = HONE_ROPE_KV_APPEND_ARGS_INIT;
    c.q = at(2);
    c.k = at(3);
    c.v = at(4);
    c.out = at(5);
    c.k_cache = at(6);
    c.v_cache = at(7);
    c.cos = at<float>(8);
    c.sin = at<float>(9);
    c.kv_lengths = at<int32_t>(10);
    c.page_table = at<int32_t>(11);
    c.positions = at<int32_t>(12);
    c.slots = at<int32_t>(13);
    c.k_scale = at<float>(14);
    c.v_scale = at<float>(15);
    c.q_weight = at(16);
    c.k_weight = at(17);
    c.q_token_stride = 18;
    c.q_head_stride = 19;
    c.k_token_stride = 20;
    c.k_head_stride = 21;
    c.v_token_stride = 22;
    c.v_head_stride = 23;
    c.out_token_stride = 24;
    c.out_head_stride = 25;
    c.cache_batch_stride = 26;
    c.cache_token_stride = 27;
    c.cache_head_stride = 28;
    c.page_table_stride = 29;
    c.q_len = 30;
    c.kv_len = 31;
    c.pool_pages = 32;
    c.table_rows = 33;
    c.epsilon = 34.5F;
    const RopeKvAppendArgs args = from_c(c);
    CHECK(args.q == at(2));
    CHECK(args.k == at(3));
    CHECK(args.v == at(4));
    CHECK(args.out == at(5));
    CHECK(args.k_cache == at(6));
    CHECK(args.v_cache == at(7));
    CHECK(args.cos == at<float>(8));
    CHECK(args.sin == at<float>(9));
    CHECK(args.kv_lengths == at<int32_t>(10));
    CHECK(args.page_table == at<int32_t>(11));
    CHECK(args.positions == at<int32_t>(12));
    CHECK(args.slots == at<int32_t>(13));
    CHECK(args.k_scale == at<float>(14));
    CHECK(args.v_scale == at<float>(15));
    CHECK(args.q_weight == at(16));
    CHECK(args.k_weight == at(17));
    CHECK(args.q_strides.token == 18);
    CHECK(args.q_strides.head == 19);
    CHECK(args.k_strides.token == 20);
    CHECK(args.k_strides.head == 21);
    CHECK(args.v_strides.token == 22);
    CHECK(args.v_strides.head == 23);
    CHECK(args.out_strides.token == 24);
    CHECK(args.out_strides.head == 25);
    CHECK(args.cache_strides.batch == 26);
    CHECK(args.cache_strides.token == 27);
    CHECK(args.cache_strides.head == 28);
    CHECK(args.page_table_stride == 29);
    CHECK(args.q_len == 30);
    CHECK(args.kv_len == 31);
    CHECK(args.pool_pages == 32);
    CHECK(args.table_rows == 33);
    CHECK(args.epsilon == 34.5F);
}

TEST_CASE("hone_sample_args: every member arrives") {
    hone_sample_args c = HONE_SAMPLE_ARGS_INIT;
    c.logits = at(2);
    c.temperature = at<float>(3);
    c.top_k = at<int32_t>(4);
    c.top_p = at<float>(5);
    c.min_p = at<float>(6);
    c.seed = at<int64_t>(7);
    c.counter = at<int64_t>(8);
    c.out = at<int32_t>(9);
    c.log_probability = at<float>(10);
    c.logits_stride = 11;
    const SampleArgs args = from_c(c);
    CHECK(args.logits == at(2));
    CHECK(args.temperature == at<float>(3));
    CHECK(args.top_k == at<int32_t>(4));
    CHECK(args.top_p == at<float>(5));
    CHECK(args.min_p == at<float>(6));
    CHECK(args.seed == at<int64_t>(7));
    CHECK(args.counter == at<int64_t>(8));
    CHECK(args.out == at<int32_t>(9));
    CHECK(args.log_probability == at<float>(10));
    CHECK(args.logits_stride == 11);
}

}  // namespace
}  // namespace hone::c_api
