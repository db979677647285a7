// Which tensors of a checkpoint are the weights of linear layers, by their names: the conventions of Hugging
// Face's models.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "checkpoints/files/safetensors.h"

namespace hone::checkpoints {

/// "model.layers.0.mlp.up_proj" of "model.layers.0.mlp.up_proj.weight"; nullopt for other endings than
/// `ending`.
[[nodiscard]] std::optional<std::string> layer_named(std::string_view tensor, std::string_view ending);

/// A matrix of 32- or 16-bit numbers that x is multiplied with: not an embedding, nor the gate that chooses
/// experts, whose few rows decide too much. `layer` is the name without ".weight".
[[nodiscard]] bool is_linear(std::string_view layer, const StoredTensor& weight);
/// The layer that makes scores of tokens.
[[nodiscard]] bool is_language_head(std::string_view layer);

/// `part` is one or more whole words of the dotted name: "down_proj", "layers.0", or all of it.
[[nodiscard]] bool is_part(std::string_view part, std::string_view layer);

}  // namespace hone::checkpoints
