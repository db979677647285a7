// How quantize_weights/warps.cu is launched.
#pragma once

#include "kernel_templates/kit/launches.h"
#include "kernel_templates/quantize_weights/quantize_weights.h"

namespace hone::quantize_weights {

struct WarpsConfig {
    std::int64_t threads = 64;
};

inline constexpr auto clear_args = join(call_args, {value_arg(0, "maxima")});
inline constexpr Kernel warps_kernels[] = {{"quantize_weights_clear", clear_args},
                                           {"quantize_weights_scales", call_args},
                                           {"quantize_weights_encode", call_args}};

[[nodiscard]] Plan warps_plan(const WeightProblem&, const WarpsConfig&, const DeviceTraits&);

[[nodiscard]] inline std::int64_t warps_access_elements(const WeightProblem& p, const WarpsConfig&) {
    return p.is_packed() ? 16 : 1;
}

}  // namespace hone::quantize_weights
