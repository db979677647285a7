// A config of variant wgmma_w16 on the host, and what follows from it: for its plan and rules (wgmma_w16.cpp)
// and the cost model (wgmma_w16_cost.cpp). Tunables stand in linear's order (linear/wgmma/product.h), whose
// plans and schedules these are, with one more.
#pragma once

#include "kernel_templates/linear/wgmma/product.h"
#include "kernel_templates/quantized_linear/quantized_linear.h"
#include "kernel_templates/quantized_linear/wgmma_w16/stage.cuh"

namespace hone::quantized_linear::w16_config {

inline constexpr std::size_t stages_together = linear::gemm::programmatic + 1;

inline linear::gemm::Geometry geometry(const QuantizedProblem& p, const Config& config) {
    linear::gemm::Geometry g = linear::gemm::geometry(p.dense(), config);
    g.operands =
        w16::Stage{.bits = p.bits(), .group = static_cast<int>(p.group), .zeros = p.zeros}.operands();
    return g;
}
inline linear::gemm::Geometry geometry(const Problem& problem, const Config& config) {
    return geometry(quantized_problem(problem), config);
}

/// Microseconds of a call.
[[nodiscard]] double predict(const Problem&, const Config&, const DeviceTraits&);

}  // namespace hone::quantized_linear::w16_config
