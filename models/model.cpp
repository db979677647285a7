#include "models/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "models/architecture.h"
#include "models/error.h"
#include "models/file_words.h"
#include "models/layer_kinds.h"
#include "models/unread_keys.h"

namespace hone::models {
namespace {

const Spellings hidden_keys{"hidden_size", "n_embd", "d_model"};
const Spellings intermediate_keys{"intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size"};
const Spellings heads_keys{"num_attention_heads", "n_head", "num_heads", "n_heads"};
const Spellings kv_heads_keys{"num_key_value_heads", "num_kv_heads", "n_head_kv"};
const Spellings layers_keys{"num_hidden_layers", "n_layer", "num_layers", "n_layers"};
const Spellings positions_keys{"max_position_embeddings", "n_positions", "n_ctx", "max_seq_len"};
const Spellings rms_keys{"rms_norm_eps"};
const Spellings layer_norm_keys{"layer_norm_eps", "layer_norm_epsilon", "layernorm_epsilon"};
const Spellings rotated_part_keys{"partial_rotary_factor", "rotary_pct"};
const Spellings rotation_base_keys{"rope_theta", "rotary_emb_base"};
const Spellings activation_keys{"hidden_act", "hidden_activation", "activation_function"};
const Spellings dtype_keys{"dtype", "torch_dtype"};

void read_norm(const Keys& keys, Model& model) {
    const std::optional<double> rms = keys.fraction(rms_keys);
    const std::optional<double> layer = keys.fraction(layer_norm_keys);
    if (!rms && !layer) {
        Spellings all = rms_keys;
        all.insert(all.end(), layer_norm_keys.begin(), layer_norm_keys.end());
        keys.missing(all);
    }
    model.norm = rms ? "rmsnorm" : "layernorm";
    model.norm_epsilon = rms ? *rms : *layer;
    model.norm_bias = !rms && keys.flag({"norm_bias"}).value_or(true);
    model.qk_norm = keys.flag({"qk_norm", "use_qk_norm"}).value_or(false);
}

void read_feed_forward(const Keys& keys, Model& model) {
    model.activation =
        keys.one_of(activation_keys, activations, model.norm == "rmsnorm" ? "silu" : "gelu_erf");
    model.gated_ffn = model.activation == "silu" || model.norm == "rmsnorm";
    model.experts = keys.size({"num_local_experts", "num_experts", "n_routed_experts"}).value_or(0);
    // GPT-2 leaves it out (or null) where it is four times the width.
    const std::optional<std::int64_t> given = keys.size(intermediate_keys);
    if (!given && keys.size({"n_embd"}).has_value()) {
        model.intermediate_size = 4 * model.hidden_size;
        return;
    }
    model.intermediate_size = given ? *given : keys.needed_size(intermediate_keys);
}

/// Llama has a key for the biases of attention and one for those of the feed-forward network; models with
/// LayerNorm usually have all.
void read_biases(const Keys& keys, Model& model) {
    const bool all = model.norm == "layernorm";
    model.output_bias = keys.flag({"attention_bias"}).value_or(all);
    model.qkv_bias = keys.flag({"qkv_bias", "add_qkv_bias"}).value_or(model.output_bias);
    model.ffn_bias = keys.flag({"mlp_bias", "ffn_bias"}).value_or(all);
}

void read_attention(const Keys& keys, Model& model) {
    model.num_attention_heads = keys.needed_size(heads_keys);
    model.num_key_value_heads = keys.size(kv_heads_keys).value_or(model.num_attention_heads);
    check_kv_heads(keys, model, kv_heads_keys);
    const std::optional<std::int64_t> head_dim = keys.size({"head_dim", "attention_head_dim"});
    if (!head_dim && model.hidden_size % model.num_attention_heads != 0) {
        keys.fail(heads_keys,
                  fmt::format("is {}, which does not divide hidden_size {} (and there is no head_dim)",
                              model.num_attention_heads, model.hidden_size));
    }
    model.head_dim = head_dim ? *head_dim : model.hidden_size / model.num_attention_heads;
    model.max_position_embeddings = keys.size(positions_keys).value_or(0);
    const bool window = keys.flag({"use_sliding_window"}).value_or(true);
    if (window) model.sliding_window = window_within(model, keys.size({"sliding_window"}).value_or(0));
    model.softcap = keys.positive({"attn_logit_softcapping"}).value_or(0);
    model.latent_attention = keys.has({"kv_lora_rank"});
}

/// Models with RMSNorm rotate queries and keys; of those with LayerNorm some do, and say so.
void read_rotation(const Keys& keys, Model& model) {
    const std::optional<double> part = keys.fraction(rotated_part_keys);
    model.learned_positions = model.norm != "rmsnorm" && !part && !keys.has(rotation_base_keys);
    if (model.learned_positions) return;
    const double pairs = part.value_or(1) * static_cast<double>(model.head_dim) / 2;
    model.rotary_dim = 2 * static_cast<std::int64_t>(pairs);
}

/// MXFP4, which experts of gpt-oss have: whoever runs them widens them to numbers.
std::optional<checkpoints::QuantizationConfig> not_widened(
    const std::optional<checkpoints::QuantizationConfig>& config) {
    return config && config->method() == "mxfp4" ? std::nullopt : config;
}

/// A packed checkpoint says of which dtype x is, which is not always that of the weights it was made of.
void read_quantization(const ModelDocument& document, Model& model) {
    model.quantization = not_widened(document.quantization());
    if (!model.quantization || model.quantization->method() != "hone") return;
    const std::optional<std::string> dtype = model.quantization->text({"dtype"});
    if (dtype != "fp16" && dtype != "bf16") model.quantization->refuse("dtype", "fp16 and bf16");
    model.dtype = *dtype_from_name(*dtype);
}

/// A file without model_type: a decoder with norms in front, as far as its keys tell.
Model read_by_keys(const Keys& keys) {
    Model model;
    model.hidden_size = keys.needed_size(hidden_keys);
    model.num_hidden_layers = keys.needed_size(layers_keys);
    check_layers(keys, model, layers_keys);
    model.vocab_size = keys.needed_size({"vocab_size"});
    read_norm(keys, model);
    read_attention(keys, model);
    read_rotation(keys, model);
    read_feed_forward(keys, model);
    read_biases(keys, model);
    keys.skip({"tie_word_embeddings"});
    model.warnings.push_back(
        fmt::format("{}: no model_type: read by its keys, as a decoder with norms in front of attention and "
                    "feed-forward network; hone model shows what was understood",
                    keys.document().file_name()));
    return model;
}

}  // namespace

void check_kv_heads(const Keys& keys, const Model& model, const Spellings& spellings) {
    if (model.num_attention_heads % model.num_key_value_heads == 0) return;
    keys.fail(spellings, fmt::format("is {}, which does not divide the {} attention heads",
                                     model.num_key_value_heads, model.num_attention_heads));
}

void check_layers(const Keys& keys, const Model& model, const Spellings& spellings) {
    if (model.num_hidden_layers > max_layers)
        keys.fail(spellings, fmt::format("is {}, allowed is 1 to {}", model.num_hidden_layers, max_layers));
}

Model model_from(const ModelDocument& document, const std::string& name) {
    const Keys keys(document);
    Model model =
        keys.has({"model_type"}) ? read_architecture(architecture_of(keys), keys) : read_by_keys(keys);
    model.name = name;
    model.dtype = *dtype_from_name(keys.one_of(dtype_keys, dtypes, "bf16"));
    read_quantization(document, model);
    std::ranges::move(unread_warnings(keys), std::back_inserter(model.warnings));
    return model;
}

std::vector<LayerGroup> layer_groups(const Model& model) {
    if (!model.layers.empty()) return model.layers;
    const LayerKind kind{.window = model.sliding_window, .experts = model.experts > 1};
    return {{kind, model.num_hidden_layers}};
}

LayerKind kind_of_layer(const Model& model, std::int64_t layer) {
    const std::size_t group =
        model.group_of_layer.empty() ? 0 : model.group_of_layer[static_cast<std::size_t>(layer)];
    return layer_groups(model)[group].kind;
}

std::int64_t layers_that(const Model& model, const std::function<bool(const LayerKind&)>& are_meant) {
    std::int64_t layers = 0;
    for (const LayerGroup& group : layer_groups(model)) layers += are_meant(group.kind) ? group.count : 0;
    return layers;
}

Model read_model_file(const std::filesystem::path& file, const std::string& name) {
    return read_model(ModelDocument::read(file), file, name);
}

Model read_model(const ModelDocument& document, const std::filesystem::path& file, const std::string& name) {
    Model model = model_from(document, name);
    if (!model.quantization && file.filename() == "config.json")
        model.quantization = not_widened(checkpoints::QuantizationConfig::read(file.parent_path()));
    return model;
}

Model read_model_folder(const std::filesystem::path& folder) {
    return read_model_file(folder / "config.json", folder.filename().string());
}

}  // namespace hone::models
