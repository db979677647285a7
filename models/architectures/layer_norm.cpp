// Decoders with LayerNorm: GPT-2 and its kin, parallel blocks, ALiBi, and those that look like Llama besides.
#include <fmt/format.h>

#include "models/architecture.h"
#include "models/file_words.h"

namespace hone::models {
namespace {

const Sizes gpt2_sizes{.hidden = {{"n_embd", "hidden_size"}},
                       .intermediate = {{"n_inner"}, Otherwise::four_widths},
                       .heads = {{"n_head", "num_attention_heads"}},
                       .kv_heads = {{}, Otherwise::heads},
                       .head_dim = {{}, Otherwise::head_share},
                       .layers = {{"n_layer", "num_hidden_layers"}},
                       .positions = {{"n_positions", "n_ctx", "max_position_embeddings"}, Otherwise::none}};
const Norms gpt2_norms{
    .family = "layernorm", .epsilon = {"layer_norm_epsilon"}, .otherwise = 1e-5, .bias = always};
const Norms neox_norms{
    .family = "layernorm", .epsilon = {"layer_norm_eps"}, .otherwise = 1e-5, .bias = always};

void read_gpt_bigcode(const Keys& keys, Model& model) {
    if (keys.flag({"multi_query"}).value_or(true)) model.num_key_value_heads = 1;
}

/// Falcon 40B and later ones share keys and values in groups, and name no parallel_attn.
void read_falcon(const Keys& keys, Model& model) {
    const bool newer = keys.flag({"new_decoder_architecture"}).value_or(false);
    const bool one_kv_head = keys.flag({"multi_query"}).value_or(true);
    const bool parallel = keys.flag({"parallel_attn"}).value_or(true);
    const std::int64_t norms = keys.count({"num_ln_in_parallel_attn"}).value_or(2);
    const std::int64_t kv_heads =
        keys.size({"num_kv_heads", "n_head_kv"}).value_or(model.num_attention_heads);
    model.num_key_value_heads = newer ? kv_heads : one_kv_head ? 1 : model.num_attention_heads;
    model.parallel = newer || parallel;
    model.two_norms = newer && norms == 2;
    check_kv_heads(keys, model, {"num_kv_heads"});
}

/// Logits are multiplied by a number below 1.
void read_cohere(const Keys& keys, Model& model) {
    model.logit_divisor = 1 / keys.positive({"logit_scale"}).value_or(0.0625);
}

void read_mpt(const Keys& keys, Model& model) {
    model.intermediate_size = keys.size({"expansion_ratio"}).value_or(4) * model.hidden_size;
    if (model.intermediate_size > 4 * max_model_size) keys.fail({"expansion_ratio"}, "is too large");
}

/// OPT-350M's tokens are narrower than its layers.
void read_opt(const Keys& keys, Model& model) {
    const std::int64_t width = keys.size({"word_embed_proj_dim"}).value_or(model.hidden_size);
    if (width == model.hidden_size) return;
    keys.fail({"word_embed_proj_dim"},
              fmt::format("is {} with hidden_size {}: Hone does not know products between the two", width,
                          model.hidden_size));
}

const std::vector<Architecture> entries{
    {.model_type = "gpt2",
     .says = "GPT-2",
     .sizes = gpt2_sizes,
     .norms = gpt2_norms,
     .rotation = {.kind = Rotation::Kind::learned},
     .attention = {.qkv_bias = always, .output_bias = always},
     .feed_forward = {{"activation_function"}, "gelu_tanh", false, always},
     .only = {{"add_cross_attention", false}},
     .numbers = {"scale_attn_weights", "scale_attn_by_inverse_layer_idx", "reorder_and_upcast_attn"}},
    {.model_type = "gpt_bigcode",
     .says = "StarCoder, SantaCoder",
     .sizes = gpt2_sizes,
     .norms = gpt2_norms,
     .rotation = {.kind = Rotation::Kind::learned},
     .attention = {.qkv_bias = always, .output_bias = always},
     .feed_forward = {{"activation_function"}, "gelu_tanh", false, always},
     .only = {{"add_cross_attention", false}},
     .numbers = {"scale_attn_weights", "attention_softmax_in_fp32", "scale_attention_softmax_in_fp32",
                 "inference_runner", "validate_runner_input", "pre_allocate_kv_cache", "max_sequence_length",
                 "max_batch_size", "pad_key_length"},
     .more = read_gpt_bigcode},
    {.model_type = "gptj",
     .says = "GPT-J",
     .sizes = gpt2_sizes,
     .norms = gpt2_norms,
     .parallel = always,
     .rotation = {.interleaved = true, .size = {"rotary_dim"}},
     .feed_forward = {{"activation_function"}, "gelu_tanh", false, always},
     .head = {.tied = not_tied, .bias = always},
     .numbers = {"rotary", "scale_attn_weights"}},
    {.model_type = "gpt_neox",
     .says = "GPT-NeoX, Pythia",
     .sizes = {.kv_heads = {{}, Otherwise::heads}, .head_dim = {{}, Otherwise::head_share}},
     .norms = neox_norms,
     .parallel = {{"use_parallel_residual"}, true},
     .two_norms = true,
     .rotation = {.share = {"rotary_pct", "partial_rotary_factor", "rope_parameters.partial_rotary_factor"},
                  .otherwise = 0.25},
     .attention = {.qkv_bias = {{"attention_bias"}, true}, .output_bias = {{"attention_bias"}, true}},
     .feed_forward = {{"hidden_act"}, "gelu_erf", false, always},
     .head = {.tied = not_tied}},
    {.model_type = "phi",
     .says = "Phi-1 and Phi-2",
     .norms = neox_norms,
     .parallel = always,
     .rotation = {.otherwise = 0.5},
     .attention = {.qkv_bias = always, .output_bias = always, .qk_norm = {{"qk_layernorm"}}},
     .feed_forward = {{"hidden_act"}, "gelu_tanh", false, always},
     .head = {.tied = not_tied, .bias = always}},
    {.model_type = "stablelm",
     .says = "StableLM",
     .norms = neox_norms,
     .parallel = {{"use_parallel_residual"}},
     .rotation = {.otherwise = 0.25},
     .attention = {.qkv_bias = {{"use_qkv_bias"}}, .qk_norm = {{"qk_layernorm"}}, .head_norm = HeadNorm::own},
     .head = {.tied = not_tied}},
    {.model_type = "cohere",
     .says = "Command R",
     .norms = {.family = "layernorm", .epsilon = {"layer_norm_eps"}, .otherwise = 1e-5},
     .parallel = always,
     .rotation = {.interleaved = true},
     .attention = {.qkv_bias = attention_bias,
                   .output_bias = attention_bias,
                   .qk_norm = {{"use_qk_norm"}},
                   .head_norm = HeadNorm::own},
     .numbers = {"model_max_length"},
     .more = read_cohere},
    {.model_type = "cohere2",
     .says = "Command R7B, Command A",
     .norms = {.family = "layernorm", .epsilon = {"layer_norm_eps"}, .otherwise = 1e-5},
     .parallel = always,
     .rotation = {.interleaved = true, .only_in_windows = true},
     .attention = {.qkv_bias = attention_bias,
                   .output_bias = attention_bias,
                   .window = {.size = {{"sliding_window"}, 4096},
                              .layers = {Spread::Rule::not_last_of,
                                         {"sliding_window_pattern", "_sliding_window_pattern"},
                                         4}}},
     .only = {{"use_qk_norm", false},
              {"use_parallel_block", true},
              {"use_gated_activation", true},
              {"use_parallel_embedding", false},
              {"position_embedding_type", "rope_gptj"}},
     .numbers = {"model_max_length", "order_of_interleaved_layers", "rotary_pct", "layer_switch",
                 "use_embedding_sharing"},
     .more = read_cohere},
    {.model_type = "falcon",
     .says = "Falcon",
     .sizes = {.hidden = {{"hidden_size", "n_embed"}},
               .intermediate = {{"ffn_hidden_size"}, Otherwise::four_widths},
               .heads = {{"num_attention_heads", "n_head"}},
               .kv_heads = {{}, Otherwise::heads},
               .head_dim = {{}, Otherwise::head_share},
               .layers = {{"num_hidden_layers", "n_layer"}}},
     .norms = gpt2_norms,
     .rotation = {.kind = Rotation::Kind::alibi_or_rotary},
     .attention = {.qkv_bias = {{"bias"}}, .output_bias = {{"bias"}}},
     .feed_forward = {{"activation"}, "gelu_erf", false, {{"bias"}}},
     .only = {{"apply_residual_connection_post_layernorm", false}},
     .numbers = {"ff_factor"},
     .more = read_falcon},
    {.model_type = "starcoder2",
     .says = "StarCoder 2",
     .norms = {.family = "layernorm", .epsilon = {"norm_epsilon"}, .otherwise = 1e-5, .bias = always},
     .attention = {.qkv_bias = {{"use_bias"}, true},
                   .output_bias = {{"use_bias"}, true},
                   .window = {.size = {{"sliding_window"}, Otherwise::none}}},
     .feed_forward = {{"hidden_act"}, "gelu_tanh", false, {{"use_bias"}, true}},
     .only = {{"norm_type", "layer_norm"}, {"mlp_type", "default"}},
     .numbers = {"activation_function", "layer_norm_epsilon", "attention_softmax_in_fp32",
                 "scale_attention_softmax_in_fp32", "scale_attn_weights"}},
    {.model_type = "olmo",
     .says = "OLMo",
     .norms = {.family = "layernorm", .epsilon = {}, .otherwise = 1e-5},
     .attention = {.qkv_bias = attention_bias, .output_bias = attention_bias, .clip = {"clip_qkv"}},
     .head = {.tied = not_tied}},
    {.model_type = "opt",
     .says = "OPT",
     .sizes = {.intermediate = {{"ffn_dim"}},
               .kv_heads = {{}, Otherwise::heads},
               .head_dim = {{}, Otherwise::head_share}},
     .norms = {.family = "layernorm", .epsilon = {}, .otherwise = 1e-5, .bias = always},
     .rotation = {.kind = Rotation::Kind::learned},
     .attention = {.qkv_bias = {{"enable_bias"}, true}, .output_bias = {{"enable_bias"}, true}},
     .feed_forward = {{"activation_function"}, "relu", false, {{"enable_bias"}, true}},
     .only = {{"do_layer_norm_before", true},
              {"layer_norm_elementwise_affine", true},
              {"_remove_final_layer_norm", false}},
     .more = read_opt},
    {.model_type = "bloom",
     .says = "BLOOM",
     .sizes = {.hidden = {{"hidden_size", "n_embed", "n_embd"}},
               .intermediate = {{}, Otherwise::four_widths},
               .heads = {{"n_head", "num_attention_heads"}},
               .kv_heads = {{}, Otherwise::heads},
               .head_dim = {{}, Otherwise::head_share},
               .layers = {{"n_layer", "num_hidden_layers"}},
               .positions = {{"seq_length"}, Otherwise::none}},
     .norms = {.family = "layernorm",
               .epsilon = {"layer_norm_epsilon"},
               .otherwise = 1e-5,
               .bias = always,
               .of_embedding = true},
     .rotation = {.kind = Rotation::Kind::alibi},
     .attention = {.qkv_bias = always, .output_bias = always},
     .feed_forward = {{}, "gelu_tanh", false, always},
     .only = {{"apply_residual_connection_post_layernorm", false}},
     .numbers = {"attention_softmax_in_fp32", "masked_softmax_fusion", "bias_dropout_fusion",
                 "slow_but_exact", "skip_bias_add", "skip_bias_add_qkv", "unk_token_id", "offset_alibi"}},
    {.model_type = "mpt",
     .says = "MPT",
     .sizes = {.hidden = {{"d_model", "hidden_size"}},
               .intermediate = {{}, Otherwise::four_widths},
               .heads = {{"n_heads", "num_attention_heads"}},
               .kv_heads = {{}, Otherwise::heads},
               .head_dim = {{}, Otherwise::head_share},
               .layers = {{"n_layers", "num_hidden_layers"}},
               .positions = {{"max_seq_len"}, Otherwise::none}},
     .norms = {.family = "layernorm", .epsilon = {"layer_norm_epsilon"}, .otherwise = 1e-5},
     .rotation = {.kind = Rotation::Kind::alibi},
     .attention = {.clip = {"attn_config.clip_qkv"}},
     .feed_forward = {{}, "gelu_erf", false, never},
     .only = {{"no_bias", true},
              {"norm_type", "low_precision_layernorm"},
              {"attn_config.alibi", true},
              {"attn_config.qk_ln", false},
              {"attn_config.prefix_lm", false},
              {"attn_config.attn_type", "multihead_attention"}},
     .numbers = {"attn_config", "attn_config.alibi_bias_max", "attn_config.attn_impl",
                 "attn_config.attn_pdrop", "attn_config.attn_uses_sequence_id", "attn_config.softmax_scale",
                 "attn_config.model_type", "logit_scale", "embedding_fraction", "init_config", "init_device",
                 "tokenizer_name", "resid_pdrop", "emb_pdrop", "learned_pos_emb", "verbose"},
     .more = read_mpt},
};

}  // namespace

std::span<const Architecture> layer_norm_architectures() { return entries; }

}  // namespace hone::models
