// What the time between tokens depends on besides the host: a step's graph alone, how fast the GPU runs, who
// else uses it, and which of the step's kernels no measurement on this kind of GPU chose. `hone generate
// --stats` says it, so that a slow run explains itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "decoder/engine/running_model.h"
#include "runtime/nvml/nvml.h"

namespace hone::cli {

struct StepCondition {
    double graph_ms = 0;
    std::optional<runtime::ClockState> clocks;  ///< behind replays of the graph; nothing without NVML
    std::optional<int> max_sm_mhz;
    std::optional<double> power_w;
    std::size_t other_processes = 0;                ///< on the GPU
    std::size_t kernels = 0;                        ///< that a step calls and a tuner may choose
    std::vector<decoder::StepKernel> not_measured;  ///< of these, chosen without a measurement of their own
};

/// Replays the step's graph: texts in the cache are lost. Throws CudaError.
[[nodiscard]] StepCondition condition_of(decoder::RunningModel& model, int device,
                                         const decoder::StepSizes& sizes);
[[nodiscard]] Json as_json(const StepCondition& condition);
[[nodiscard]] std::string text_of(const StepCondition& condition);

}  // namespace hone::cli
