// Decoders with RMSNorm that stand elsewhere than in front alone, or that normalize queries and keys of all
// heads together.
#include "models/architecture.h"

namespace hone::models {
namespace {

const SizeKey gemma_head{{"head_dim"}, 256};
/// Their hidden_act, gelu or not, is one that the reference implementation passes over.
const FeedForward gemma_network{.activation = {"hidden_activation"}, .otherwise = "gelu_tanh"};

const std::vector<Architecture> entries{
    {.model_type = "gemma",
     .says = "Gemma",
     .sizes = {.head_dim = gemma_head},
     .norms = {.unit_offset = true},
     .embedding_scale = true,
     .attention = {.qkv_bias = attention_bias, .output_bias = attention_bias},
     .feed_forward = gemma_network,
     .only = {{"use_bidirectional_attention", false}},
     .numbers = {"hidden_act"}},
    {.model_type = "gemma2",
     .says = "Gemma 2",
     .sizes = {.head_dim = gemma_head},
     .norms = {.unit_offset = true, .places = NormPlaces::around},
     .embedding_scale = true,
     .attention = {.qkv_bias = attention_bias,
                   .output_bias = attention_bias,
                   .window = {.size = {{"sliding_window", "sliding_window_size"}, 4096},
                              .layers = {Spread::Rule::not_last_of, {}, 2}},
                   .softcap = {{"attn_logit_softcapping"}, 50},
                   .query_scalar = {{"query_pre_attn_scalar"}, 256}},
     .feed_forward = gemma_network,
     .head = {.cap = {{"final_logit_softcapping"}, 30}},
     .only = {{"use_bidirectional_attention", false}},
     .numbers = {"hidden_act"}},
    {.model_type = "gemma3_text",
     .says = "Gemma 3",
     .sizes = {.hidden = {{"hidden_size"}, 2304},
               .intermediate = {{"intermediate_size"}, 9216},
               .heads = {{"num_attention_heads"}, 8},
               .kv_heads = {{"num_key_value_heads"}, 4},
               .head_dim = gemma_head,
               .layers = {{"num_hidden_layers"}, 26},
               .vocabulary = {{"vocab_size"}, 262208},
               .positions = {{"max_position_embeddings"}, 131072}},
     .norms = {.unit_offset = true, .places = NormPlaces::around},
     .embedding_scale = true,
     .rotation = {.base = 1e6, .apart_in_windows = true, .window_base = {{"rope_local_base_freq"}, 10'000}},
     .attention = {.qkv_bias = attention_bias,
                   .output_bias = attention_bias,
                   .qk_norm = always,
                   .window = {.size = {{"sliding_window"}, 4096},
                              .layers = {Spread::Rule::not_last_of,
                                         {"sliding_window_pattern", "_sliding_window_pattern"},
                                         6}},
                   .softcap = {{"attn_logit_softcapping"}},
                   .query_scalar = {{"query_pre_attn_scalar"}, 256}},
     .feed_forward = gemma_network,
     .head = {.cap = {{"final_logit_softcapping"}}},
     .only = {{"use_bidirectional_attention", false}},
     .numbers = {"hidden_act", "rope_local_base_freq"}},
    {.model_type = "glm4",
     .says = "GLM-4 of 2025",
     .sizes = {.kv_heads = {{"num_key_value_heads"}, 2}, .head_dim = {{"head_dim"}, 128}},
     .norms = {.otherwise = 1.5625e-7, .places = NormPlaces::around},
     .rotation = {.interleaved = true, .otherwise = 0.5},
     .attention = {.qkv_bias = {{"attention_bias"}, true}},
     .head = {.tied = not_tied}},
    {.model_type = "olmo2",
     .says = "OLMo 2",
     .norms = {.otherwise = 1e-5, .places = NormPlaces::behind},
     .attention = {.qkv_bias = attention_bias,
                   .output_bias = attention_bias,
                   .qk_norm = always,
                   .head_norm = HeadNorm::all_heads},
     .head = {.tied = not_tied}},
    {.model_type = "olmo3",
     .says = "OLMo 3",
     .norms = {.otherwise = 1e-5, .places = NormPlaces::behind},
     .rotation = {.base = 500'000, .apart_in_windows = true},
     .attention = {.qkv_bias = attention_bias,
                   .output_bias = attention_bias,
                   .qk_norm = always,
                   .head_norm = HeadNorm::all_heads,
                   .window = {.size = {{"sliding_window"}, 4096},
                              .layers = {Spread::Rule::not_last_of, {}, 4}}},
     .head = {.tied = not_tied}},
};

}  // namespace

std::span<const Architecture> norm_architectures() { return entries; }

}  // namespace hone::models
