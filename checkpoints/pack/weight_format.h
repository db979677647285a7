// How the linear layers of a model are stored, as far as the problems depend on it: what an option or the
// model's file says. Opens no checkpoint.
#pragma once

#include <cstdint>
#include <optional>

#include "checkpoints/read/quantization_config.h"
#include "hone/quant_format.h"

namespace hone::checkpoints {

/// The format of all layers; its fields are those of hone::QuantizedLinear.
struct WeightFormat {
    std::optional<QuantFormat> format;  ///< empty: numbers of the model's dtype
    std::int64_t group = 0;
    bool zeros = false;
    bool lm_head = false;  ///< the language head too
};

/// What `hone quantize` makes of a checkpoint with this config, or has made; of codes of 8 bits w8a16. Throws
/// CheckpointError for what it refuses by the config.
[[nodiscard]] WeightFormat weight_format(const QuantizationConfig& config);

}  // namespace hone::checkpoints
