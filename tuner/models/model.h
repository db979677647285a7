// From a model file's keys to the sizes that decide problems. Knows the spellings that model families use for
// one thing, what may be left out, and which values make sense. Hugging Face's names; docs/troubleshooting.md
// lists the spellings.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernel_templates/dtype.h"
#include "tuner/models/model_document.h"

namespace hone::tuner {

/// The keys of a model that decide shapes, with Hugging Face's names.
struct Model {
    std::string name;
    std::string activation;  ///< "silu", "gelu_tanh", ...
    std::string norm;        ///< "rmsnorm" or "layernorm"
    Dtype dtype = Dtype::bf16;
    std::int64_t hidden_size = 0;
    std::int64_t intermediate_size = 0;
    std::int64_t num_attention_heads = 0;
    std::int64_t num_key_value_heads = 0;
    std::int64_t head_dim = 0;
    std::int64_t num_hidden_layers = 0;
    std::int64_t vocab_size = 0;
    std::int64_t max_position_embeddings = 0;
    std::int64_t sliding_window = 0;  ///< 0: none
    std::int64_t rotary_dim = 0;      ///< elements of a head that are rotated; 0: learned positions
    double norm_epsilon = 1e-5;
    bool gated_ffn = true;
    bool norm_bias = false;
    bool qkv_bias = false;     ///< the query, key and value projections have one
    bool output_bias = false;  ///< the projection behind attention has one
    bool ffn_bias = false;     ///< all linear layers of the feed-forward network have one
    bool qk_norm = false;
    bool softcap = false;           ///< attention's scores have a cap
    std::int64_t experts = 0;       ///< mixture of experts; 0 or 1: one dense feed-forward
    bool latent_attention = false;  ///< compressed keys and values (MLA)
    /// What the file says of stored weights; checkpoints::weight_format() judges it.
    std::optional<checkpoints::QuantizationConfig> quantization;
};

/// Throws ConfigError naming file, line and key for a missing key (with every accepted spelling), a value of
/// the wrong kind, out of 1 .. 2^24, or sizes that contradict each other.
[[nodiscard]] Model model_from(const ModelDocument& document, const std::string& name);

/// A known model, a config.json, or the folder of one, where the files that older GPTQ and AWQ checkpoints
/// have beside it count as well. Throws InputError (file, line, key) for an unreadable model and for sizes
/// that make no sense.
[[nodiscard]] Model read_model(const std::string& name_or_path);
/// Names of configs/models/*.yaml.
[[nodiscard]] std::vector<std::string> known_models();

/// Largest size that any key may have.
inline constexpr std::int64_t max_model_size = std::int64_t{1} << 24;

}  // namespace hone::tuner
