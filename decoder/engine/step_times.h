// What a model's steps take, measured on it before it serves: a scheduler's StepCost is made of them.
#pragma once

#include <vector>

#include "decoder/engine/running_model.h"

namespace hone::decoder {

/// Steps without prompts for some numbers of sequences with few and with many keys, and prompts alone, as
/// long as a step of them takes up to `stretch` times the longest without: what is beyond is never asked for.
/// About a hundred steps. Before the model has a text: it overwrites pages. Throws CudaError.
[[nodiscard]] std::vector<StepTime> measured_steps(RunningModel& model, double stretch);

}  // namespace hone::decoder
