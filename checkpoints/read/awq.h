// Layers of AWQ checkpoints, version "gemm". Of a layer [out, in] with 4 bits:
//   qweight  int32 [in, out / 8]      8 rows of a column in a word: from the low end 0, 2, 4, 6, 1, 3, 5, 7
//   qzeros   int32 [groups, out / 8]  8 rows of a group in a word, in the same order
//   scales   fp16  [groups, out]
#pragma once

#include <cstdint>
#include <string>

#include "checkpoints/read/checkpoint.h"
#include "checkpoints/read/grouped_weight.h"
#include "checkpoints/read/quantization_config.h"

namespace hone::checkpoints {

struct AwqConfig {
    std::int64_t group = 0;  ///< 32, 64 or 128 columns; 0: whole rows
    bool zero_point = true;  ///< false: a layer may lack qzeros, and 8 is meant
};

/// Throws CheckpointError for another method or version, and for bits other than 4.
[[nodiscard]] AwqConfig awq_config(const QuantizationConfig& config);

/// The tensors `layer`.qweight and so on ("model.layers.0.mlp.up_proj"). Throws CheckpointError for tensors
/// that are not as above.
[[nodiscard]] GroupedWeight read_awq(const Checkpoint& checkpoint, const std::string& layer,
                                     const AwqConfig& config);

}  // namespace hone::checkpoints
