// What the cost models and spaces of variant mma count alike, here and in quantized_expert_linear: `p` is
// then one expert's layer.
#pragma once

#include "kernel_templates/quantized_linear/mma/plan.h"

namespace hone::quantized_linear {

/// Registers of a thread: two batches of weights, each load with its scale and zero points; sums; what one
/// step takes; and addresses, for fp8 also what is not yet scaled, or widened.
[[nodiscard]] std::int64_t registers(const QuantizedProblem& p, const MmaConfig& c);

/// Loads of 16 bytes that a thread has under way.
[[nodiscard]] std::int64_t loads(const QuantizedProblem& p, const MmaConfig& c);

/// Issue slots of a warp for 16 bytes of codes a lane: to widen and scale them, to fetch x, to multiply,
/// which takes the tensor cores as long as five others.
[[nodiscard]] double slots(const QuantizedProblem& p, const MmaConfig& c);

/// Blocks whose threads have so many registers that fit a multiprocessor.
[[nodiscard]] double fitting(const mma_blocks::Geometry& g, std::int64_t registers,
                             const DeviceTraits& traits);

}  // namespace hone::quantized_linear
