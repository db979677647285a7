// Decoders as Llama: RMSNorm in front of attention and of a gated feed-forward network, rotation of halves.
#include "tuner/models/architecture.h"

namespace hone::tuner {
namespace {

const FlagKey attention_bias{{"attention_bias"}};
const FlagKey not_tied{{"tie_word_embeddings"}, false};

const std::vector<Architecture> entries{
    {.model_type = "llama",
     .says = "Llama 1 to 3",
     .attention = {.qkv_bias = attention_bias, .output_bias = attention_bias},
     .feed_forward = {.bias = {{"mlp_bias"}}},
     .head = {.tied = not_tied}},
    {.model_type = "mistral",
     .says = "Mistral",
     .attention = {.window = {.size = {{"sliding_window"}, 4096}}},
     .head = {.tied = not_tied}},
    {.model_type = "qwen2",
     .says = "Qwen 2",
     .attention = {.qkv_bias = always,
                   .window = {.size = {{"sliding_window"}, 4096},
                              .used = {{"use_sliding_window"}, false},
                              .layers = {Spread::Rule::from, {"max_window_layers"}, 28}}},
     .head = {.tied = not_tied},
     .only = {{"use_mrope", false}}},
    {.model_type = "qwen3",
     .says = "Qwen 3",
     .sizes = {.head_dim = {{"head_dim"}, 128}},
     .attention = {.qkv_bias = attention_bias,
                   .output_bias = attention_bias,
                   .qk_norm = always,
                   .window = {.size = {{"sliding_window"}, 4096},
                              .used = {{"use_sliding_window"}, false},
                              .layers = {Spread::Rule::from, {"max_window_layers"}, 28}}},
     .head = {.tied = not_tied}},
    {.model_type = "phi3",
     .says = "Phi-3 and Phi-4",
     .attention = {.window = {.size = {{"sliding_window"}, Otherwise::none}}},
     .head = {.tied = not_tied},
     .only = {{"attention_bias", false},
              {"mlp_bias", false},
              {"lm_head_bias", false},
              {"full_attn_mod", std::int64_t{1}}},
     .numbers = {"interpolate_factor"}},
    {.model_type = "granite",
     .says = "Granite",
     .embedding_scale = true,
     .attention = {.qkv_bias = attention_bias, .output_bias = attention_bias},
     .feed_forward = {.bias = {{"mlp_bias"}}},
     .head = {.tied = not_tied},
     .numbers = {"attention_multiplier", "embedding_multiplier", "logits_scaling", "residual_multiplier"}},
    {.model_type = "smollm3",
     .says = "SmolLM 3",
     .rotation = {.layers = {Spread::Rule::not_last_of, {"no_rope_layer_interval"}, 4},
                  .list = {"no_rope_layers"}},
     .attention = {.qkv_bias = attention_bias,
                   .output_bias = attention_bias,
                   .window = {.size = {{"sliding_window"}, Otherwise::none},
                              .used = {{"use_sliding_window"}, false},
                              .layers = {Spread::Rule::last_of, {"no_rope_layer_interval"}, 4}}},
     .feed_forward = {.bias = {{"mlp_bias"}}},
     .numbers = {"max_window_layers"}},
    {.model_type = "internlm",
     .says = "InternLM",
     .attention = {.qkv_bias = {{"bias"}, true}, .output_bias = {{"bias"}, true}},
     .head = {.tied = not_tied}},
    {.model_type = "internlm2",
     .says = "InternLM 2",
     .attention = {.qkv_bias = {{"bias"}, true}, .output_bias = {{"bias"}, true}},
     .head = {.tied = not_tied},
     .numbers = {"attn_implementation"}},
    {.model_type = "glm",
     .says = "GLM-4 of 2024",
     .rotation = {.interleaved = true, .otherwise = 0.5},
     .attention = {.qkv_bias = attention_bias},
     .head = {.tied = not_tied}},
};

}  // namespace

std::span<const Architecture> llama_architectures() { return entries; }

}  // namespace hone::tuner
