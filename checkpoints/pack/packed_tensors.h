// How a packed layer stands in a checkpoint: as the tensors LAYER.codes, LAYER.scales, LAYER.zeros
// and LAYER.input_order. docs/formats.md has the table.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "checkpoints/files/safetensors_writer.h"
#include "checkpoints/pack/layer_source.h"

namespace hone::checkpoints {

/// Codes, scales, and zero points and the order of x if there are any, in this order.
[[nodiscard]] std::vector<TensorOutline> packed_outlines(const LayerOutline& layer);

/// Their bytes, in the same order.
[[nodiscard]] std::vector<std::span<const std::byte>> packed_parts(const PackedLayer& layer);

}  // namespace hone::checkpoints
