// init, prepare, run, explain and workspace of every operator. Generated from the declarations,
// kernel_templates/*/operators.py and generate/enums.py, by `./hone generate`.
#include "runtime/c_api/conversions.h"
#include "runtime/c_api/operator.h"

using namespace hone::c_api;

hone_status hone_attention_append_init(hone_attention_append* description, size_t struct_size) {
    constexpr hone_attention_append defaults = HONE_ATTENTION_APPEND_INIT;
    return initialize(description, struct_size, defaults);
}

hone_status hone_attention_append_args_init(hone_attention_append_args* args, size_t struct_size) {
    constexpr hone_attention_append_args defaults = HONE_ATTENTION_APPEND_ARGS_INIT;
    return initialize(args, struct_size, defaults);
}

hone_status hone_attention_init(hone_attention* description, size_t struct_size) {
    constexpr hone_attention defaults = HONE_ATTENTION_INIT;
    return initialize(description, struct_size, defaults);
}

hone_status hone_attention_args_init(hone_attention_args* args, size_t struct_size) {
    constexpr hone_attention_args defaults = HONE_ATTENTION_ARGS_INIT;
    return initialize(args, struct_size, defaults);
}

hone_status hone_embedding_init(hone_embedding* description, size_t struct_size) {
    constexpr hone_embedding defaults = HONE_EMBEDDING_INIT;
    return initialize(description, struct_size, defaults);
}

hone_status hone_embedding_args_init(hone_embedding_args* args, size_t struct_size) {
    constexpr hone_embedding_args defaults = HONE_EMBEDDING_ARGS_INIT;
    return initialize(args, struct_size, defaults);
}

hone_status hone_expert_linear_init(hone_expert_linear* description, size_t struct_size) {
    constexpr hone_expert_linear defaults = HONE_EXPERT_LINEAR_INIT;
    return initialize(description, struct_size, defaults);
}

hone_status hone_expert_linear_args_init(hone_expert_linear_args* args, size_t struct_size) {
    constexpr hone_expert_linear_args defaults = HONE_EXPERT_LINEAR_ARGS_INIT;
    return initialize(args, struct_size, defaults);
}

hone_status hone_expert_routing_init(hone_expert_routing* description, size_t struct_size) {
    constexpr hone_expert_routing defaults = HONE_EXPERT_ROUTING_INIT;
    return initialize(description, struct_size, defaults);
}

hone_status hone_expert_routing_args_init(hone_expert_routing_args* args, size_t struct_size) {
    constexpr hone_expert_routing_args defaults = HONE_EXPERT_ROUTING_ARGS_INIT;
    return initialize(args, struct_size, defaults);
}

hone_status hone_linear_init(hone_linear* description, size_t struct_size) {
    constexpr hone_linear defaults = HONE_LINEAR_INIT;
    return initialize(description, struct_size, defaults);
}

hone_status hone_linear_args_init(hone_linear_args* args, size_t struct_size) {
    constexpr hone_linear_args defaults = HONE_LINEAR_ARGS_INIT;
    return initialize(args, struct_size, defaults);
}

hone_status hone_fused_ffn_init(hone_fused_ffn* description, size_t struct_size) {
    constexpr hone_fused_ffn defaults = HONE_FUSED_FFN_INIT;
    return initialize(description, struct_size, defaults);
}

hone_status hone_fused_ffn_args_init(hone_fused_ffn_args* args, size_t struct_size) {
    constexpr hone_fused_ffn_args defaults = HONE_FUSED_FFN_ARGS_INIT;
    return initialize(args, struct_size, defaults);
}

hone_status hone_rms_norm_init(hone_rms_norm* description, size_t struct_size) {
    constexpr hone_rms_norm defaults = HONE_RMS_NORM_INIT;
    return initialize(description, struct_size, defaults);
}

hone_status hone_norm_args_init(hone_norm_args* args, size_t struct_size) {
    constexpr hone_norm_args defaults = HONE_NORM_ARGS_INIT;
    return initialize(args, struct_size, defaults);
}

hone_status hone_layer_norm_init(hone_layer_norm* description, size_t struct_size) {
    constexpr hone_layer_norm defaults = HONE_LAYER_NORM_INIT;
    return initialize(description, struct_size, defaults);
}

hone_status hone_quantize_weights_init(hone_quantize_weights* description, size_t struct_size) {
    constexpr hone_quantize_weights defaults = HONE_QUANTIZE_WEIGHTS_INIT;
    return initialize(description, struct_size, defaults);
}

hone_status hone_quantize_weights_args_init(hone_quantize_weights_args* args, size_t struct_size) {
    constexpr hone_quantize_weights_args defaults = HONE_QUANTIZE_WEIGHTS_ARGS_INIT;
    return initialize(args, struct_size, defaults);
}

hone_status hone_quantized_expert_linear_init(hone_quantized_expert_linear* description, size_t struct_size) {
    constexpr hone_quantized_expert_linear defaults = HONE_QUANTIZED_EXPERT_LINEAR_INIT;
    return initialize(description, struct_size, defaults);
}

hone_status hone_quantized_expert_linear_args_init(hone_quantized_expert_linear_args* args,
                                                   size_t struct_size) {
    constexpr hone_quantized_expert_linear_args defaults = HONE_QUANTIZED_EXPERT_LINEAR_ARGS_INIT;
    return initialize(args, struct_size, defaults);
}

hone_status hone_quantized_linear_init(hone_quantized_linear* description, size_t struct_size) {
    constexpr hone_quantized_linear defaults = HONE_QUANTIZED_LINEAR_INIT;
    return initialize(description, struct_size, defaults);
}

hone_status hone_quantized_linear_args_init(hone_quantized_linear_args* args, size_t struct_size) {
    constexpr hone_quantized_linear_args defaults = HONE_QUANTIZED_LINEAR_ARGS_INIT;
    return initialize(args, struct_size, defaults);
}

hone_status hone_quantized_ffn_init(hone_quantized_ffn* description, size_t struct_size) {
    constexpr hone_quantized_ffn defaults = HONE_QUANTIZED_FFN_INIT;
    return initialize(description, struct_size, defaults);
}

hone_status hone_quantized_ffn_args_init(hone_quantized_ffn_args* args, size_t struct_size) {
    constexpr hone_quantized_ffn_args defaults = HONE_QUANTIZED_FFN_ARGS_INIT;
    return initialize(args, struct_size, defaults);
}

hone_status hone_rms_norm_backward_init(hone_rms_norm_backward* description, size_t struct_size) {
    constexpr hone_rms_norm_backward defaults = HONE_RMS_NORM_BACKWARD_INIT;
    return initialize(description, struct_size, defaults);
}

hone_status hone_rms_norm_backward_args_init(hone_rms_norm_backward_args* args, size_t struct_size) {
    constexpr hone_rms_norm_backward_args defaults = HONE_RMS_NORM_BACKWARD_ARGS_INIT;
    return initialize(args, struct_size, defaults);
}

hone_status hone_rope_kv_append_init(hone_rope_kv_append* description, size_t struct_size) {
    constexpr hone_rope_kv_append defaults = HONE_ROPE_KV_APPEND_INIT;
    return initialize(description, struct_size, defaults);
}

hone_status hone_rope_kv_append_args_init(hone_rope_kv_append_args* args, size_t struct_size) {
    constexpr hone_rope_kv_append_args defaults = HONE_ROPE_KV_APPEND_ARGS_INIT;
    return initialize(args, struct_size, defaults);
}

hone_status hone_sample_init(hone_sample* description, size_t struct_size) {
    constexpr hone_sample defaults = HONE_SAMPLE_INIT;
    return initialize(description, struct_size, defaults);
}

hone_status hone_sample_args_init(hone_sample_args* args, size_t struct_size) {
    constexpr hone_sample_args defaults = HONE_SAMPLE_ARGS_INIT;
    return initialize(args, struct_size, defaults);
}

hone_status hone_attention_append_prepare(hone_runtime* runtime, const hone_attention_append* description,
                                          hone_operator** op) {
    return prepare(runtime, description, op, "hone_attention_append_prepare");
}

hone_status hone_attention_append_run(const hone_operator* op, void* stream,
                                      const hone_attention_append_args* args, int64_t batch, int64_t kv_len) {
    constexpr hone_attention_append_args defaults = HONE_ATTENTION_APPEND_ARGS_INIT;
    return run<hone::AttentionAppendKernel>(op, stream, args, defaults,
                                            hone::AttentionAppendSizes{batch, kv_len});
}

hone_status hone_attention_append_explain(const hone_runtime* runtime,
                                          const hone_attention_append* description, int64_t batch,
                                          int64_t kv_len, hone_text_format format, char* text,
                                          size_t capacity, size_t* length) {
    return explain(runtime, description, hone::AttentionAppendSizes{batch, kv_len},
                   {format, text, capacity, length}, "hone_attention_append_explain");
}

hone_status hone_attention_append_workspace(const hone_operator* op, int64_t batch, int64_t kv_len,
                                            size_t* bytes) {
    return workspace<hone::AttentionAppendKernel>(op, hone::AttentionAppendSizes{batch, kv_len}, bytes,
                                                  "hone_attention_append_workspace");
}

hone_status hone_attention_prepare(hone_runtime* runtime, const hone_attention* description,
                                   hone_operator** op) {
    return prepare(runtime, description, op, "hone_attention_prepare");
}

hone_status hone_attention_run(const hone_operator* op, void* stream, const hone_attention_args* args,
                               int64_t batch, int64_t q_len, int64_t kv_len) {
    constexpr hone_attention_args defaults = HONE_ATTENTION_ARGS_INIT;
    return run<hone::AttentionKernel>(op, stream, args, defaults, hone::AttentionSizes{batch, q_len, kv_len});
}

hone_status hone_attention_explain(const hone_runtime* runtime, const hone_attention* description,
                                   int64_t batch, int64_t q_len, int64_t kv_len, hone_text_format format,
                                   char* text, size_t capacity, size_t* length) {
    return explain(runtime, description, hone::AttentionSizes{batch, q_len, kv_len},
                   {format, text, capacity, length}, "hone_attention_explain");
}

hone_status hone_attention_workspace(const hone_operator* op, int64_t batch, int64_t q_len, int64_t kv_len,
                                     size_t* bytes) {
    return workspace<hone::AttentionKernel>(op, hone::AttentionSizes{batch, q_len, kv_len}, bytes,
                                            "hone_attention_workspace");
}

hone_status hone_embedding_prepare(hone_runtime* runtime, const hone_embedding* description,
                                   hone_operator** op) {
    return prepare(runtime, description, op, "hone_embedding_prepare");
}

hone_status hone_embedding_run(const hone_operator* op, void* stream, const hone_embedding_args* args,
                               int64_t tokens) {
    constexpr hone_embedding_args defaults = HONE_EMBEDDING_ARGS_INIT;
    return run<hone::EmbeddingKernel>(op, stream, args, defaults, tokens);
}

hone_status hone_embedding_explain(const hone_runtime* runtime, const hone_embedding* description,
                                   int64_t tokens, hone_text_format format, char* text, size_t capacity,
                                   size_t* length) {
    return explain(runtime, description, tokens, {format, text, capacity, length}, "hone_embedding_explain");
}

hone_status hone_expert_linear_prepare(hone_runtime* runtime, const hone_expert_linear* description,
                                       hone_operator** op) {
    return prepare(runtime, description, op, "hone_expert_linear_prepare");
}

hone_status hone_expert_linear_run(const hone_operator* op, void* stream, const hone_expert_linear_args* args,
                                   int64_t tokens) {
    constexpr hone_expert_linear_args defaults = HONE_EXPERT_LINEAR_ARGS_INIT;
    return run<hone::ExpertLinearKernel>(op, stream, args, defaults, tokens);
}

hone_status hone_expert_linear_explain(const hone_runtime* runtime, const hone_expert_linear* description,
                                       int64_t tokens, hone_text_format format, char* text, size_t capacity,
                                       size_t* length) {
    return explain(runtime, description, tokens, {format, text, capacity, length},
                   "hone_expert_linear_explain");
}

hone_status hone_expert_routing_prepare(hone_runtime* runtime, const hone_expert_routing* description,
                                        hone_operator** op) {
    return prepare(runtime, description, op, "hone_expert_routing_prepare");
}

hone_status hone_expert_routing_run(const hone_operator* op, void* stream,
                                    const hone_expert_routing_args* args, int64_t tokens) {
    constexpr hone_expert_routing_args defaults = HONE_EXPERT_ROUTING_ARGS_INIT;
    return run<hone::ExpertRoutingKernel>(op, stream, args, defaults, tokens);
}

hone_status hone_expert_routing_explain(const hone_runtime* runtime, const hone_expert_routing* description,
                                        int64_t tokens, hone_text_format format, char* text, size_t capacity,
                                        size_t* length) {
    return explain(runtime, description, tokens, {format, text, capacity, length},
                   "hone_expert_routing_explain");
}

hone_status hone_linear_prepare(hone_runtime* runtime, const hone_linear* description, hone_operator** op) {
    return prepare(runtime, description, op, "hone_linear_prepare");
}

hone_status hone_linear_run(const hone_operator* op, void* stream, const hone_linear_args* args,
                            int64_t tokens) {
    constexpr hone_linear_args defaults = HONE_LINEAR_ARGS_INIT;
    return run<hone::LinearKernel>(op, stream, args, defaults, tokens);
}

hone_status hone_linear_explain(const hone_runtime* runtime, const hone_linear* description, int64_t tokens,
                                hone_text_format format, char* text, size_t capacity, size_t* length) {
    return explain(runtime, description, tokens, {format, text, capacity, length}, "hone_linear_explain");
}

hone_status hone_fused_ffn_prepare(hone_runtime* runtime, const hone_fused_ffn* description,
                                   hone_operator** op) {
    return prepare(runtime, description, op, "hone_fused_ffn_prepare");
}

hone_status hone_fused_ffn_run(const hone_operator* op, void* stream, const hone_fused_ffn_args* args,
                               int64_t tokens) {
    constexpr hone_fused_ffn_args defaults = HONE_FUSED_FFN_ARGS_INIT;
    return run<hone::FusedFfnKernel>(op, stream, args, defaults, tokens);
}

hone_status hone_fused_ffn_explain(const hone_runtime* runtime, const hone_fused_ffn* description,
                                   int64_t tokens, hone_text_format format, char* text, size_t capacity,
                                   size_t* length) {
    return explain(runtime, description, tokens, {format, text, capacity, length}, "hone_fused_ffn_explain");
}

hone_status hone_rms_norm_prepare(hone_runtime* runtime, const hone_rms_norm* description,
                                  hone_operator** op) {
    return prepare(runtime, description, op, "hone_rms_norm_prepare");
}

hone_status hone_layer_norm_prepare(hone_runtime* runtime, const hone_layer_norm* description,
                                    hone_operator** op) {
    return prepare(runtime, description, op, "hone_layer_norm_prepare");
}

hone_status hone_norm_run(const hone_operator* op, void* stream, const hone_norm_args* args, int64_t rows) {
    constexpr hone_norm_args defaults = HONE_NORM_ARGS_INIT;
    return run<hone::NormKernel>(op, stream, args, defaults, rows);
}

hone_status hone_rms_norm_explain(const hone_runtime* runtime, const hone_rms_norm* description, int64_t rows,
                                  hone_text_format format, char* text, size_t capacity, size_t* length) {
    return explain(runtime, description, rows, {format, text, capacity, length}, "hone_rms_norm_explain");
}

hone_status hone_layer_norm_explain(const hone_runtime* runtime, const hone_layer_norm* description,
                                    int64_t rows, hone_text_format format, char* text, size_t capacity,
                                    size_t* length) {
    return explain(runtime, description, rows, {format, text, capacity, length}, "hone_layer_norm_explain");
}

hone_status hone_quantized_expert_linear_prepare(hone_runtime* runtime,
                                                 const hone_quantized_expert_linear* description,
                                                 hone_operator** op) {
    return prepare(runtime, description, op, "hone_quantized_expert_linear_prepare");
}

hone_status hone_quantized_expert_linear_run(const hone_operator* op, void* stream,
                                             const hone_quantized_expert_linear_args* args, int64_t tokens) {
    constexpr hone_quantized_expert_linear_args defaults = HONE_QUANTIZED_EXPERT_LINEAR_ARGS_INIT;
    return run<hone::QuantizedExpertLinearKernel>(op, stream, args, defaults, tokens);
}

hone_status hone_quantized_expert_linear_explain(const hone_runtime* runtime,
                                                 const hone_quantized_expert_linear* description,
                                                 int64_t tokens, hone_text_format format, char* text,
                                                 size_t capacity, size_t* length) {
    return explain(runtime, description, tokens, {format, text, capacity, length},
                   "hone_quantized_expert_linear_explain");
}

hone_status hone_quantized_linear_prepare(hone_runtime* runtime, const hone_quantized_linear* description,
                                          hone_operator** op) {
    return prepare(runtime, description, op, "hone_quantized_linear_prepare");
}

hone_status hone_quantized_linear_run(const hone_operator* op, void* stream,
                                      const hone_quantized_linear_args* args, int64_t tokens) {
    constexpr hone_quantized_linear_args defaults = HONE_QUANTIZED_LINEAR_ARGS_INIT;
    return run<hone::QuantizedLinearKernel>(op, stream, args, defaults, tokens);
}

hone_status hone_quantized_linear_explain(const hone_runtime* runtime,
                                          const hone_quantized_linear* description, int64_t tokens,
                                          hone_text_format format, char* text, size_t capacity,
                                          size_t* length) {
    return explain(runtime, description, tokens, {format, text, capacity, length},
                   "hone_quantized_linear_explain");
}

hone_status hone_quantized_ffn_prepare(hone_runtime* runtime, const hone_quantized_ffn* description,
                                       hone_operator** op) {
    return prepare(runtime, description, op, "hone_quantized_ffn_prepare");
}

hone_status hone_quantized_ffn_run(const hone_operator* op, void* stream, const hone_quantized_ffn_args* args,
                                   int64_t tokens) {
    constexpr hone_quantized_ffn_args defaults = HONE_QUANTIZED_FFN_ARGS_INIT;
    return run<hone::QuantizedFfnKernel>(op, stream, args, defaults, tokens);
}

hone_status hone_quantized_ffn_explain(const hone_runtime* runtime, const hone_quantized_ffn* description,
                                       int64_t tokens, hone_text_format format, char* text, size_t capacity,
                                       size_t* length) {
    return explain(runtime, description, tokens, {format, text, capacity, length},
                   "hone_quantized_ffn_explain");
}

hone_status hone_rms_norm_backward_prepare(hone_runtime* runtime, const hone_rms_norm_backward* description,
                                           hone_operator** op) {
    return prepare(runtime, description, op, "hone_rms_norm_backward_prepare");
}

hone_status hone_rms_norm_backward_run(const hone_operator* op, void* stream,
                                       const hone_rms_norm_backward_args* args, int64_t rows) {
    constexpr hone_rms_norm_backward_args defaults = HONE_RMS_NORM_BACKWARD_ARGS_INIT;
    return run<hone::RmsNormBackwardKernel>(op, stream, args, defaults, rows);
}

hone_status hone_rms_norm_backward_explain(const hone_runtime* runtime,
                                           const hone_rms_norm_backward* description, int64_t rows,
                                           hone_text_format format, char* text, size_t capacity,
                                           size_t* length) {
    return explain(runtime, description, rows, {format, text, capacity, length},
                   "hone_rms_norm_backward_explain");
}

hone_status hone_rope_kv_append_prepare(hone_runtime* runtime, const hone_rope_kv_append* description,
                                        hone_operator** op) {
    return prepare(runtime, description, op, "hone_rope_kv_append_prepare");
}

hone_status hone_rope_kv_append_run(const hone_operator* op, void* stream,
                                    const hone_rope_kv_append_args* args, int64_t tokens) {
    constexpr hone_rope_kv_append_args defaults = HONE_ROPE_KV_APPEND_ARGS_INIT;
    return run<hone::RopeKvAppendKernel>(op, stream, args, defaults, tokens);
}

hone_status hone_rope_kv_append_explain(const hone_runtime* runtime, const hone_rope_kv_append* description,
                                        int64_t tokens, hone_text_format format, char* text, size_t capacity,
                                        size_t* length) {
    return explain(runtime, description, tokens, {format, text, capacity, length},
                   "hone_rope_kv_append_explain");
}

hone_status hone_sample_prepare(hone_runtime* runtime, const hone_sample* description, hone_operator** op) {
    return prepare(runtime, description, op, "hone_sample_prepare");
}

hone_status hone_sample_run(const hone_operator* op, void* stream, const hone_sample_args* args,
                            int64_t rows) {
    constexpr hone_sample_args defaults = HONE_SAMPLE_ARGS_INIT;
    return run<hone::SampleKernel>(op, stream, args, defaults, rows);
}

hone_status hone_sample_explain(const hone_runtime* runtime, const hone_sample* description, int64_t rows,
                                hone_text_format format, char* text, size_t capacity, size_t* length) {
    return explain(runtime, description, rows, {format, text, capacity, length}, "hone_sample_explain");
}
