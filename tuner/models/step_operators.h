// What the steps of the decoder call otherwise than the operators of other engines (models/step_operators.h):
// attention that appends, single tokens beside prompts, products with norms and sums in them, norms that
// write codes. Called by operators.cpp.
#pragma once

#include <vector>

#include "kernel_templates/device_traits.h"
#include "tuner/models/attention_operators.h"
#include "tuner/models/model_part.h"

namespace hone::tuner {

/// None of models that steps have no operators for, nor of a part of a model: a step is one GPU's. What the
/// operators do not take, such as a size out of their range, is left out. `sizes`: those of attention over
/// one token.
[[nodiscard]] std::vector<ModelOperator> step_operators(const ModelPart& part,
                                                        const std::vector<CacheSize>& sizes);

/// Attention that appends is called where one kernel does it that is faster than its parts one after the
/// other; of other operators always.
[[nodiscard]] bool is_called_in_steps(const Problem& problem, const DeviceTraits& device);

}  // namespace hone::tuner
