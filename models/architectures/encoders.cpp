// Encoders of text: every token sees all others, or those around it, and nothing is cached.
#include "models/architecture.h"

namespace hone::models {
namespace {

Architecture bert_like(std::string_view model_type, std::string_view says) {
    return {.model_type = model_type,
            .says = says,
            .sizes = {.kv_heads = {{}, Otherwise::heads}, .head_dim = {{}, Otherwise::head_share}},
            .norms = {.family = "layernorm",
                      .epsilon = {"layer_norm_eps"},
                      .otherwise = 1e-12,
                      .bias = always,
                      .places = NormPlaces::after_sum,
                      .of_embedding = true,
                      .before_first_layer = false,
                      .final_norm = false},
            .encoder = true,
            .token_types = true,
            .rotation = {.kind = Rotation::Kind::learned},
            .attention = {.qkv_bias = always, .output_bias = always},
            .feed_forward = {{"hidden_act"}, "gelu_erf", false, always},
            .head = {.kind = Head::Kind::masked, .bias = always, .transform_bias = always},
            .only = {{"position_embedding_type", "absolute"},
                     {"is_decoder", false},
                     {"add_cross_attention", false}},
            .numbers = {"type_vocab_size", "directionality", "pooler_fc_size", "pooler_num_attention_heads",
                        "pooler_num_fc_layers", "pooler_size_per_head", "pooler_type"}};
}

const std::vector<Architecture> entries{
    bert_like("bert", "BERT"),
    bert_like("roberta", "RoBERTa"),
    bert_like("xlm-roberta", "XLM-RoBERTa"),
    {.model_type = "modernbert",
     .says = "ModernBERT",
     .sizes = {.kv_heads = {{}, Otherwise::heads}, .head_dim = {{}, Otherwise::head_share}},
     .norms = {.family = "layernorm",
               .epsilon = {"norm_eps"},
               .otherwise = 1e-5,
               .bias = {{"norm_bias"}},
               .of_embedding = true,
               .before_first_layer = false},
     .encoder = true,
     .attention = {.qkv_bias = {{"attention_bias"}},
                   .output_bias = {{"attention_bias"}},
                   .window = {.size = {{"local_attention"}, 128},
                              .layers = {Spread::Rule::not_first_of, {"global_attn_every_n_layers"}, 3}}},
     .feed_forward = {{"hidden_activation"}, "gelu_erf", true, {{"mlp_bias"}}},
     .head = {.kind = Head::Kind::masked,
              .bias = {{"decoder_bias"}, true},
              .transform_bias = {{"classifier_bias"}}},
     .numbers = {"classifier_activation", "classifier_pooling", "layer_norm_eps", "deterministic_flash_attn",
                 "global_rope_theta", "local_rope_theta", "position_embedding_type", "reference_compile",
                 "sparse_prediction", "sparse_pred_ignore_index", "repad_logits_with_grad"}},
};

}  // namespace

std::span<const Architecture> encoder_architectures() { return entries; }

}  // namespace hone::models
