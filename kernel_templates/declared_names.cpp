// What kernel_templates/names.h lists. Generated from kernel_templates/*/operators.py by `./hone generate`.

#include "kernel_templates/names.h"

namespace hone {
namespace {

constexpr std::string_view attention[] = {"attention_decode", "attention_prefill"};
constexpr std::string_view attention_append[] = {"attention_append"};
constexpr std::string_view embedding[] = {"embedding"};
constexpr std::string_view expert_linear[] = {"expert_linear"};
constexpr std::string_view expert_routing[] = {"expert_routing"};
constexpr std::string_view fused_ffn[] = {"linear"};
constexpr std::string_view fused_ffn_problems[] = {"gated=yes", "activation!=none"};
constexpr std::string_view layer_norm[] = {"layernorm"};
constexpr std::string_view linear[] = {"linear"};
constexpr std::string_view linear_problems[] = {"gated=no"};
constexpr std::string_view quantize_weights[] = {"quantize_weights"};
constexpr std::string_view quantized_expert_linear[] = {"quantized_expert_linear"};
constexpr std::string_view quantized_ffn[] = {"quantized_linear"};
constexpr std::string_view quantized_ffn_problems[] = {"gated=yes", "activation!=none"};
constexpr std::string_view quantized_linear[] = {"quantized_linear"};
constexpr std::string_view quantized_linear_problems[] = {"gated=no"};
constexpr std::string_view rms_norm[] = {"rmsnorm"};
constexpr std::string_view rms_norm_backward[] = {"rmsnorm_backward"};
constexpr std::string_view rope_kv_append[] = {"rope_kv_append"};
constexpr std::string_view sample[] = {"sample"};

constexpr OperatorName operators[] = {
    {.title = "Attention", .families = attention},
    {.title = "AttentionAppend", .families = attention_append},
    {.title = "Embedding", .families = embedding},
    {.title = "ExpertLinear", .families = expert_linear},
    {.title = "ExpertRouting", .families = expert_routing},
    {.title = "FusedFfn", .families = fused_ffn, .problems = fused_ffn_problems, .halves = true},
    {.title = "LayerNorm", .families = layer_norm},
    {.title = "Linear", .families = linear, .problems = linear_problems},
    {.title = "QuantizeWeights", .families = quantize_weights},
    {.title = "QuantizedExpertLinear", .families = quantized_expert_linear},
    {.title = "QuantizedFfn", .families = quantized_ffn, .problems = quantized_ffn_problems, .halves = true},
    {.title = "QuantizedLinear", .families = quantized_linear, .problems = quantized_linear_problems},
    {.title = "RmsNorm", .families = rms_norm},
    {.title = "RmsNormBackward", .families = rms_norm_backward},
    {.title = "RopeKvAppend", .families = rope_kv_append},
    {.title = "Sample", .families = sample},
};

constexpr DtypeSynonym synonyms[] = {
    {.text = "float32", .dtype = "fp32"},  {.text = "float", .dtype = "fp32"},
    {.text = "float16", .dtype = "fp16"},  {.text = "half", .dtype = "fp16"},
    {.text = "bfloat16", .dtype = "bf16"},
};

}  // namespace

std::span<const OperatorName> operator_names() { return operators; }
std::span<const DtypeSynonym> dtype_synonyms() { return synonyms; }

}  // namespace hone
