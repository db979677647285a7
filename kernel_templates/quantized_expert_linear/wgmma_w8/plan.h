// How quantized_expert_linear/wgmma_w8/kernel.cu is launched.
#pragma once

#include "kernel_templates/expert_linear/wgmma/plan.h"
#include "kernel_templates/quantized_expert_linear/launches.h"

namespace hone::quantized_expert_linear {

struct WgmmaW8Config : expert_linear::WgmmaConfig {
    std::int64_t promote = 0;
};

inline constexpr auto wgmma_w8_args = join(
    call_args, {tensor_map_arg(0, "weight_map"), tensor_map_arg(1, "x_map"), tensor_map_arg(2, "up_map")});
inline constexpr Kernel wgmma_w8_kernels[] = {
    {"quantized_expert_linear_wgmma_w8", wgmma_w8_args}, codes, combine};

/// As the kernel has it: a stage has 128 columns.
[[nodiscard]] linear::gemm::Geometry geometry(const QuantizedExpertProblem&, const WgmmaW8Config&);
/// Columns of tiles.
[[nodiscard]] std::int64_t tiles_across(const QuantizedExpertProblem&, const WgmmaW8Config&);

[[nodiscard]] Plan wgmma_w8_plan(const QuantizedExpertProblem&, const WgmmaW8Config&, const DeviceTraits&);

[[nodiscard]] constexpr std::int64_t wgmma_w8_access_elements(const QuantizedExpertProblem&,
                                                              const WgmmaW8Config&) {
    return 16;
}

}  // namespace hone::quantized_expert_linear
