// Decoders with a mixture of experts in place of the feed-forward network, in all layers or some.
#include "models/architecture.h"

namespace hone::models {
namespace {

/// What says how tokens choose experts, which is part of their kernel.
const Spellings routing{
    "norm_topk_prob", "routed_scaling_factor", "scoring_func", "topk_method", "n_group", "topk_group",
    "ep_size"};

const FlagKey norm_topk_prob{{"norm_topk_prob"}};

/// As DeepSeek counts them: some dense layers first, then experts and shared ones.
const Experts deepseek_experts{.number = {{"n_routed_experts"}},
                               .width = {"moe_intermediate_size"},
                               .shared_number = {"n_shared_experts"},
                               .dense_first = {"first_k_dense_replace"}};
/// As Qwen does.
const Experts qwen_experts{.number = {{"num_experts", "num_local_experts"}},
                           .width = {"moe_intermediate_size"},
                           .routing = Routing::softmax,
                           .renormalize = norm_topk_prob,
                           .layers = {Spread::Rule::last_of, {"decoder_sparse_step"}, 1},
                           .dense_list = {"mlp_only_layers"}};

/// Keys that all their files have, and that say nothing where windows are off.
Spellings with_windows(Spellings keys) {
    keys.insert(keys.end(), {"sliding_window", "max_window_layers"});
    return keys;
}

Experts with_shared_width(Experts experts) {
    experts.shared_width = {"shared_expert_intermediate_size"};
    experts.shared_gate = true;
    return experts;
}

const std::vector<Architecture> entries{
    {.model_type = "mixtral",
     .says = "Mixtral",
     .norms = {.otherwise = 1e-5},
     .rotation = {.base = 1e6},
     .attention = {.window = {.size = {{"sliding_window"}, Otherwise::none}}},
     .experts = {.number = {{"num_local_experts"}, 8},
                 .per_token = {{"num_experts_per_tok"}, 2},
                 .routing = Routing::softmax_of_chosen},
     .head = {.tied = not_tied}},
    {.model_type = "qwen2_moe",
     .says = "Qwen 2 with experts",
     .attention = {.qkv_bias = {{"qkv_bias"}, true}},
     .experts = with_shared_width(qwen_experts),
     .head = {.tied = not_tied},
     .only = {{"use_sliding_window", false}},
     .numbers = with_windows(routing)},
    {.model_type = "qwen3_moe",
     .says = "Qwen 3 with experts",
     .attention = {.qkv_bias = attention_bias,
                   .output_bias = attention_bias,
                   .qk_norm = always,
                   .window = {.size = {{"sliding_window"}, 4096}, .used = {{"use_sliding_window"}, false}}},
     .experts = qwen_experts,
     .head = {.tied = not_tied},
     .only = {{"qkv_bias", false},
              {"use_qk_norm", true},
              {"shared_expert_intermediate_size", std::int64_t{0}}},
     .numbers = with_windows(routing)},
    {.model_type = "olmoe",
     .says = "OLMoE",
     .norms = {.otherwise = 1e-5},
     .attention = {.qkv_bias = attention_bias,
                   .output_bias = attention_bias,
                   .qk_norm = always,
                   .head_norm = HeadNorm::all_heads,
                   .clip = {"clip_qkv"}},
     .experts = {.number = {{"num_experts"}, 64},
                 .per_token = {{"num_experts_per_tok"}, 8},
                 .routing = Routing::softmax,
                 .renormalize = norm_topk_prob},
     .head = {.tied = not_tied},
     .numbers = routing},
    {.model_type = "granitemoe",
     .says = "Granite with experts",
     .embedding_scale = true,
     .factors = granite_factors,
     .attention = {.qkv_bias = attention_bias, .output_bias = attention_bias},
     .experts = {.number = {{"num_local_experts"}, 8},
                 .per_token = {{"num_experts_per_tok"}, 2},
                 .routing = Routing::softmax_of_chosen},
     .head = {.tied = not_tied}},
    {.model_type = "glm4_moe",
     .says = "GLM-4.5",
     .norms = {.otherwise = 1e-5},
     .rotation = {.otherwise = 0.5},
     .attention = {.qkv_bias = attention_bias, .qk_norm = {{"use_qk_norm"}}},
     .experts = deepseek_experts,
     .head = {.tied = not_tied},
     .numbers = routing},
    {.model_type = "deepseek_v2",
     .says = "DeepSeek V2",
     .rotation = {.interleaved = true},
     .attention = {.output_bias = attention_bias, .latent = true},
     .experts = deepseek_experts,
     .head = {.tied = not_tied},
     .only = {{"moe_layer_freq", std::int64_t{1}}, {"attention_bias", false}},
     .numbers = routing},
    {.model_type = "deepseek_v3",
     .says = "DeepSeek V3 and R1",
     .rotation = {.interleaved = true},
     .attention = {.output_bias = attention_bias, .latent = true},
     .experts = deepseek_experts,
     .head = {.tied = not_tied},
     .only = {{"moe_layer_freq", std::int64_t{1}}, {"attention_bias", false}, {"rope_interleave", true}},
     .numbers = routing},
    {.model_type = "gpt_oss",
     .says = "gpt-oss",
     .sizes = {.head_dim = {{"head_dim"}, 64}},
     .norms = {.otherwise = 1e-5},
     .rotation = {.base = 150'000},
     .attention = {.qkv_bias = {{"attention_bias"}, true},
                   .output_bias = {{"attention_bias"}, true},
                   .window = {.size = {{"sliding_window"}, 128},
                              .layers = {Spread::Rule::not_last_of, {}, 2}},
                   .sinks = true},
     .experts = {.number = {{"num_local_experts"}, 128},
                 .per_token = {{"num_experts_per_tok", "experts_per_token"}, 4},
                 .router_bias = true,
                 .routing = Routing::softmax_of_chosen,
                 .activation = "swiglu_oai",
                 .limit = {{"swiglu_limit"}, Experts::known_limit},
                 .bias = true},
     .head = {.tied = not_tied},
     .numbers = {"initial_context_length", "experts_per_token"}},
    {.model_type = "llama4_text",
     .says = "Llama 4",
     .sizes = {.hidden = {{"hidden_size"}, 5120},
               .intermediate = {{"intermediate_size"}, 8192},
               .heads = {{"num_attention_heads"}, 40},
               .kv_heads = {{"num_key_value_heads"}, 8},
               .head_dim = {{"head_dim"}, 128},
               .layers = {{"num_hidden_layers"}, 48},
               .vocabulary = {{"vocab_size"}, 202048},
               .positions = {{"max_position_embeddings"}, 131072}},
     .norms = {.otherwise = 1e-5},
     .rotation = {.interleaved = true,
                  .layers = {Spread::Rule::not_last_of, {"no_rope_layer_interval"}, 4},
                  .list = {"no_rope_layers"}},
     .attention = {.qkv_bias = attention_bias,
                   .output_bias = attention_bias,
                   .qk_norm = {{"use_qk_norm"}, true},
                   .qk_norm_with_rotation = true,
                   .chunk = {{"attention_chunk_size"}, 8192},
                   .scaled_queries = {{"attn_temperature_tuning"}, true}},
     .experts = {.number = {{"num_local_experts"}, 16},
                 .per_token = {{"num_experts_per_tok"}, 1},
                 .dense_width = {"intermediate_size_mlp"},
                 .shared_as_others = true,
                 .own_network = true,
                 .layers = {Spread::Rule::last_of, {"interleave_moe_layer_step"}, 1},
                 .expert_list = {"moe_layers"}},
     .head = {.tied = not_tied},
     .numbers = {"floor_scale", "attn_scale", "for_llm_compressor"}},
};

}  // namespace

std::span<const Architecture> expert_architectures() { return entries; }

}  // namespace hone::models
