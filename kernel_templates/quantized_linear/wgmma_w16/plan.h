// How quantized_linear/wgmma_w16/kernel.cu is launched. Plans and schedules are linear's (linear/wgmma/),
// whose config it has with one more number.
#pragma once

#include "kernel_templates/linear/wgmma/product.h"
#include "kernel_templates/quantized_linear/quantized_linear.h"
#include "kernel_templates/quantized_linear/wgmma_w16/stage.cuh"

namespace hone::quantized_linear {

struct WgmmaW16Config : linear::gemm::WgmmaConfig {
    std::int64_t stages_together = 1;
};

[[nodiscard]] constexpr w16::Form form_of(std::int64_t stages_together) {
    return w16::form_of(static_cast<int>(stages_together));
}

[[nodiscard]] inline linear::gemm::Geometry geometry(const QuantizedProblem& p, const WgmmaW16Config& c) {
    linear::gemm::Geometry g = linear::gemm::geometry(p.dense(), c);
    g.operands = w16::Stage{.bits = p.bits(), .group = static_cast<int>(p.group), .zeros = p.zeros}.operands(
        form_of(c.stages_together));
    return g;
}

inline constexpr auto wgmma_w16_args =
    join(call_args,
         {tensor_map_arg(0, "x_map"), tensor_map_arg(1, "result_map"), tensor_map_arg(2, "x_rest_map")});
inline constexpr Kernel wgmma_w16_kernels[] = {{"quantized_linear_wgmma_w16", wgmma_w16_args}, normalize};

[[nodiscard]] Plan wgmma_w16_plan(const QuantizedProblem&, const WgmmaW16Config&, const DeviceTraits&);

[[nodiscard]] constexpr std::int64_t wgmma_w16_access_elements(const QuantizedProblem&,
                                                               const WgmmaW16Config&) {
    return 16;
}

}  // namespace hone::quantized_linear
