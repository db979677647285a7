// How a packed layer stands in a checkpoint: as the tensors LAYER.codes, LAYER.scales and LAYER.zeros.
// docs/formats.md has the table.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "hone/quantize.h"
#include "tuner/checkpoint/safetensors_writer.h"

namespace hone::tuner {

/// Codes, scales, and zero points if there are any, in this order.
[[nodiscard]] std::vector<TensorOutline> packed_outlines(const std::string& layer, const PackedShape& shape);

/// Their bytes, in the same order.
[[nodiscard]] std::vector<std::span<const std::byte>> packed_parts(const QuantizedWeight& weight);

}  // namespace hone::tuner
