// The config.json of a checkpoint, as far as quantizing asks for it.
#pragma once

#include <nlohmann/json.hpp>

#include "checkpoints/read/checkpoint.h"
#include "hone/quantize.h"

namespace hone::checkpoints {

/// Empty where there is none. Throws CheckpointError for one that cannot be parsed.
[[nodiscard]] nlohmann::json model_config(const Checkpoint& checkpoint);

/// fp16 where it says so, else bf16.
[[nodiscard]] Dtype model_dtype(const nlohmann::json& config);

}  // namespace hone::checkpoints
