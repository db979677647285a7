#include "decoder/model/tensor_names.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace hone::decoder {
namespace {

const std::vector<TensorNames>& entries() {
    static const std::vector<TensorNames> all{
        {.model_type = "gpt2",
         .embedding = "wte",
         .positions = "wpe",
         .layer = "h.",
         .attention_norm = "ln_1",
         .qkv = {"attn.c_attn"},
         .output = "attn.c_proj",
         .network_norm = "ln_2",
         .up = {"mlp.c_fc"},
         .down = "mlp.c_proj",
         .final_norm = "ln_f",
         .optional_prefix = "transformer.",
         .columns_first = true},
        {.model_type = "gemma", .root_scale = true},
        {.model_type = "gemma2",
         .network_norm = "pre_feedforward_layernorm",
         .behind_attention = "post_attention_layernorm",
         .behind_network = "post_feedforward_layernorm",
         .root_scale = true},
        {.model_type = "glm", .up = {"mlp.gate_up_proj"}},
        {.model_type = "glm4",
         .behind_attention = "post_self_attn_layernorm",
         .behind_network = "post_mlp_layernorm",
         .up = {"mlp.gate_up_proj"}},
        {.model_type = "granite"},
        {.model_type = "llama"},
        {.model_type = "mistral"},
        {.model_type = "mixtral",
         .router = "block_sparse_moe.gate",
         .experts = "block_sparse_moe.experts",
         .expert_up = {"w1", "w3"},
         .expert_down = "w2"},
        {.model_type = "olmo2",
         .attention_norm = {},
         .network_norm = {},
         .behind_attention = "post_attention_layernorm",
         .behind_network = "post_feedforward_layernorm"},
        {.model_type = "phi3", .qkv = {"self_attn.qkv_proj"}, .up = {"mlp.gate_up_proj"}},
        {.model_type = "qwen2"},
        {.model_type = "qwen3"},
        {.model_type = "qwen3_moe", .router = "mlp.gate", .experts = "mlp.experts"},
        {.model_type = "stablelm"},
        {.model_type = "starcoder2", .up = {"mlp.c_fc"}, .down = "mlp.c_proj"},
    };
    return all;
}

}  // namespace

const TensorNames* tensor_names(std::string_view model_type) {
    const auto found = std::ranges::find(entries(), model_type, &TensorNames::model_type);
    return found == entries().end() ? nullptr : &*found;
}

std::string runnable_model_types() {
    std::vector<std::string_view> names;
    for (const TensorNames& entry : entries()) names.push_back(entry.model_type);
    return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace hone::decoder
