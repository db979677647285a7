// How quantized_expert_linear/mma/kernel.cu is launched.
#pragma once

#include "kernel_templates/quantized_expert_linear/launches.h"
#include "kernel_templates/quantized_linear/mma/plan.h"

namespace hone::quantized_expert_linear {

using quantized_linear::MmaConfig;

[[nodiscard]] inline quantized_linear::mma_blocks::Geometry geometry(const QuantizedExpertProblem& p,
                                                                     const MmaConfig& c) {
    return quantized_linear::geometry(p.coded(), c);
}

inline constexpr Kernel mma_kernels[] = {{"quantized_expert_linear_mma", call_args}, codes, combine};

[[nodiscard]] Plan mma_plan(const QuantizedExpertProblem&, const MmaConfig&, const DeviceTraits&);

[[nodiscard]] constexpr std::int64_t mma_access_elements(const QuantizedExpertProblem&, const MmaConfig&) {
    return 16;
}

}  // namespace hone::quantized_expert_linear
