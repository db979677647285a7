// How quantized_linear/two_widths/kernel.cu is launched: as wgmma_w16, with maps for tiles of either width.
#pragma once

#include "kernel_templates/quantized_linear/wgmma_w16/plan.h"

namespace hone::quantized_linear {

struct TwoWidthsConfig : WgmmaW16Config {
    std::int64_t last_n = 128;
    std::int64_t last_rounds = 1;
};

inline constexpr auto two_widths_args =
    join(call_args, {tensor_map_arg(0, "x_map"), tensor_map_arg(1, "result_map"),
                     tensor_map_arg(2, "x_rest_map"), tensor_map_arg(3, "last_x_map"),
                     tensor_map_arg(4, "last_result_map"), tensor_map_arg(5, "last_x_rest_map")});
inline constexpr Kernel two_widths_kernels[] = {{"quantized_linear_two_widths", two_widths_args}, normalize};

[[nodiscard]] Plan two_widths_plan(const QuantizedProblem&, const TwoWidthsConfig&, const DeviceTraits&);

[[nodiscard]] constexpr std::int64_t two_widths_access_elements(const QuantizedProblem&,
                                                                const TwoWidthsConfig&) {
    return 16;
}

}  // namespace hone::quantized_linear
