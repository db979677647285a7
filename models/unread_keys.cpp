#include "models/unread_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "models/first_names.h"

namespace hone::models {
namespace {

/// Keys that any file may have and that change no operator. Angles of rotary embeddings are tables of
/// numbers, which an engine hands over.
constexpr std::array harmless = std::to_array<std::string_view>({
    // What a file says of itself.
    "architectures",
    "auto_map",
    "name_or_path",
    "model_name",
    "transformers_version",
    "transformers.js_config",
    "license",
    "tokenizer_class",
    "library_name",
    "language",
    "quantization_config",
    "custom_pipelines",
    // Tokens and labels.
    "id2label",
    "label2id",
    "num_labels",
    "problem_type",
    "image_token_id",
    "image_token_index",
    "boi_token_index",
    "eoi_token_index",
    "video_token_id",
    "video_token_index",
    "boi_token_id",
    "eoi_token_id",
    "vision_start_token_id",
    "vision_end_token_id",
    "vision_token_id",
    "user_defined_symbols",
    // Training.
    "initializer_range",
    "initializer_factor",
    "initializer_cutoff_factor",
    "init_std",
    "gradient_checkpointing",
    "use_mup",
    "output_router_logits",
    "router_aux_loss_coef",
    "router_jitter_noise",
    "router_z_loss_coef",
    "aux_loss_alpha",
    "seq_aux",
    "pretraining_tp",
    "pretrained_seq_length",
    "finetuning_task",
    "training",
    "gradient_checkpointing_use_reentrant",
    "label_smoothing",
    "use_auxiliary_loss",
    "mlm_probability",
    "scale_parameter",
    "rescale_layer_norm_init",
    "weight_decay",
    // Angles of rotary embeddings.
    "rope_theta",
    "rope_scaling",
    "rope_parameters",
    "rope_type",
    "rotary_emb_base",
    "rope_base",
    "original_max_position_embeddings",
    "max_sequence_length",
    "rope_ratio",
    // Generation, and what a framework returns.
    "use_cache",
    "cache_implementation",
    "task_specific_params",
    "output_past",
    "predict_special_tokens",
    "prefix",
    "temperature",
    "top_k",
    "top_p",
    "typical_p",
    "do_sample",
    "early_stopping",
    "max_length",
    "min_length",
    "max_new_tokens",
    "num_beams",
    "num_beam_groups",
    "num_return_sequences",
    "no_repeat_ngram_size",
    "encoder_no_repeat_ngram_size",
    "repetition_penalty",
    "length_penalty",
    "diversity_penalty",
    "bad_words_ids",
    "suppress_tokens",
    "begin_suppress_tokens",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "exponential_decay_length_penalty",
    "remove_invalid_values",
    "output_scores",
    "return_dict",
    "return_dict_in_generate",
    "output_attentions",
    "output_hidden_states",
    "torchscript",
    "use_bfloat16",
    "keys_to_ignore_at_inference",
    "attn_implementation",
    "use_flash_attn",
    "use_flash_attention_2",
    "model_parallel",
    "chunk_size_feed_forward",
    "generation_config",
    "tf_legacy_loss",
    "pruned_heads",
    "sep_token",
    // Heads of other tasks.
    "summary_type",
    "summary_use_proj",
    "summary_activation",
    "summary_proj_to_labels",
    "summary_first_dropout",
    "classifier_dropout",
    "classifier_pooling",
    // Weights stand as they are asked for.
    "weight_format",
    "unsloth_fixed",
    "unsloth_version",
    // What stands beside a language model's sizes, for images.
    "mm_tokens_per_image",
    "multimodal_projector_bias",
    "projector_hidden_act",
    "spatial_merge_size",
    "vision_feature_layer",
    "vision_feature_select_strategy",
    "image_seq_length",
    "image_grid_pinpoints",
    "ignore_index",
    "use_image_newline_parameter",
    "text_config",
});

/// Such as attention_dropout, resid_pdrop, eos_token_id and _name_or_path.
bool has_harmless_form(std::string_view key) {
    constexpr std::array<std::string_view, 5> endings{"dropout", "_pdrop", "dropout_prob", "_token_id",
                                                      "_token_ids"};
    if (key.starts_with('_') || key == "layerdrop") return true;
    return std::ranges::any_of(endings, [&](std::string_view ending) { return key.ends_with(ending); });
}

/// Keys whose usual value means that there is nothing of the kind.
bool says_none(const Keys::Entry& entry) {
    constexpr std::array<std::string_view, 6> kinds{
        "is_decoder",          "is_encoder_decoder",          "add_cross_attention",
        "tie_encoder_decoder", "cross_attention_hidden_size", "is_composition"};
    const auto* flag = std::get_if<bool>(&entry.value);
    return flag != nullptr && !*flag && std::ranges::find(kinds, entry.key) != kinds.end();
}

bool is_harmless(const Keys::Entry& entry) {
    return entry.key.starts_with("rope_parameters.") || entry.key.starts_with("rope_scaling.") ||
           std::ranges::find(harmless, entry.key) != harmless.end() || has_harmless_form(entry.key) ||
           says_none(entry);
}

}  // namespace

std::vector<std::string> doubtful_keys(const Keys& keys) {
    const std::vector<std::string> unread = keys.unread();
    std::vector<std::string> names;
    std::set<std::string_view> known;  // a nested key may stand at the top, too; there may be very many
    for (const Keys::Entry* entry : keys.document().entries()) {
        if (!std::ranges::binary_search(unread, entry->key) || is_harmless(*entry)) continue;
        if (known.insert(entry->key).second) names.push_back(entry->key);
    }
    return names;
}

std::vector<std::string> unread_warnings(const Keys& keys) {
    constexpr std::size_t most_named = 20;
    const std::vector<std::string> names = doubtful_keys(keys);
    if (names.empty()) return {};
    return {fmt::format("{}: not read: {}; what they change of the model is not in its operators",
                        keys.document().file_name(), first_names(names, most_named))};
}

}  // namespace hone::models
