#include "checkpoints/pack/linear_layers.h"

#include <algorithm>
#include <array>

namespace hone::checkpoints {
namespace {

/// Tables that are looked up, by the last word of their names; most others have "embed" in a word.
constexpr std::array<std::string_view, 4> tables{"wte", "wpe", "shared", "relative_attention_bias"};
constexpr std::array<std::string_view, 3> expert_gates{"gate", "router", "shared_expert_gate"};
constexpr std::array<std::string_view, 2> language_heads{"lm_head", "embed_out"};

std::string_view last_word(std::string_view layer) { return layer.substr(layer.rfind('.') + 1); }

bool has(std::span<const std::string_view> words, std::string_view word) {
    return std::ranges::find(words, word) != words.end();
}

}  // namespace

std::optional<std::string> layer_named(std::string_view tensor, std::string_view ending) {
    if (tensor.size() <= ending.size() || !tensor.ends_with(ending)) return std::nullopt;
    return std::string(tensor.substr(0, tensor.size() - ending.size()));
}

bool is_linear(std::string_view layer, const StoredTensor& weight) {
    const bool number =
        weight.type == StoredType::f32 || weight.type == StoredType::f16 || weight.type == StoredType::bf16;
    if (!number || weight.shape.size() != 2 || weight.size_bytes == 0) return false;
    if (is_language_head(layer)) return true;
    const std::string_view word = last_word(layer);
    return layer.find("embed") == std::string_view::npos && !has(tables, word) && !has(expert_gates, word);
}

bool is_language_head(std::string_view layer) {
    return layer == "output" || has(language_heads, last_word(layer));
}

bool is_part(std::string_view part, std::string_view layer) {
    for (std::size_t at = layer.find(part); at != std::string_view::npos; at = layer.find(part, at + 1)) {
        const std::size_t end = at + part.size();
        if ((at == 0 || layer[at - 1] == '.') && (end == layer.size() || layer[end] == '.'))
            return !part.empty();
    }
    return false;
}

}  // namespace hone::checkpoints
