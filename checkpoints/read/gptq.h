// Layers of GPTQ checkpoints. A layer [out, in] with b bits has n = 32 / b numbers in a word, low end first:
//   qweight  int32 [in / n, out]      n columns of a row in a word
//   qzeros   int32 [groups, out / n]  n rows of a group in a word; each is the zero point in the format
//                                     "gptq_v2", and one less in the format "gptq"
//   scales   fp16  [groups, out]
//   g_idx    int32 [in]               group of each column; by activation order (desc_act) any
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "checkpoints/read/checkpoint.h"
#include "checkpoints/read/grouped_weight.h"
#include "checkpoints/read/quantization_config.h"

namespace hone::checkpoints {

struct GptqConfig {
    int bits = 4;            ///< 4 or 8
    std::int64_t group = 0;  ///< 32, 64 or 128 columns; 0: whole rows
    bool desc_act = false;
    std::optional<bool> sym;     ///< true: every zero point must be the middle
    bool zeros_less_one = true;  ///< format "gptq"
};

/// Throws CheckpointError for another method and for values beyond those above.
[[nodiscard]] GptqConfig gptq_config(const QuantizationConfig& config);

/// Whether read_gptq() gives the layer a column_order; reads its g_idx alone. Throws CheckpointError as that
/// does for g_idx and the shapes it has to fit.
[[nodiscard]] bool is_reordered(const Checkpoint& checkpoint, const std::string& layer,
                                const GptqConfig& config);

/// The tensors `layer`.qweight and so on ("model.layers.0.mlp.up_proj"). Columns of one group are made to
/// stand side by side: GroupedWeight::column_order. Throws CheckpointError for tensors that are not as above,
/// groups of unequal size, and for a zero point 0 in the format "gptq", where its -1 has spoilt the numbers
/// beside it in a way that readers of the format undo differently.
[[nodiscard]] GroupedWeight read_gptq(const Checkpoint& checkpoint, const std::string& layer,
                                      const GptqConfig& config);

}  // namespace hone::checkpoints
