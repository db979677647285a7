// How quantized_expert_linear/wgmma_w16/kernel.cu is launched.
#pragma once

#include "kernel_templates/expert_linear/wgmma/plan.h"
#include "kernel_templates/quantized_expert_linear/launches.h"
#include "kernel_templates/quantized_expert_linear/wgmma_w16/registers.cuh"

namespace hone::quantized_expert_linear {

struct WgmmaW16Config : expert_linear::WgmmaConfig {
    std::int64_t stages_together = 1;
    std::int64_t narrow_n = 0;
};

inline constexpr KernelArg wgmma_w16_maps[] = {
    tensor_map_arg(0, "x_map"),
    tensor_map_arg(1, "narrow_x_map"),
};
inline constexpr auto wgmma_w16_args = join(call_args, wgmma_w16_maps);
inline constexpr Kernel wgmma_w16_kernels[] = {
    {"quantized_expert_linear_wgmma_w16", wgmma_w16_args}, copies, combine};

/// As the kernel has it.
[[nodiscard]] linear::gemm::Geometry geometry(const QuantizedExpertProblem&, const WgmmaW16Config&);
/// Columns of tiles.
[[nodiscard]] std::int64_t tiles_across(const QuantizedExpertProblem&, const WgmmaW16Config&);

[[nodiscard]] Plan wgmma_w16_plan(const QuantizedExpertProblem&, const WgmmaW16Config&, const DeviceTraits&);

[[nodiscard]] constexpr std::int64_t wgmma_w16_access_elements(const QuantizedExpertProblem&,
                                                               const WgmmaW16Config&) {
    return 16;
}

}  // namespace hone::quantized_expert_linear
