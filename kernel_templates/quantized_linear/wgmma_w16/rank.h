// What variant wgmma_w16 costs.
#pragma once

#include "kernel_templates/quantized_linear/wgmma_w16/plan.h"

namespace hone::quantized_linear {

/// Microseconds of a call.
[[nodiscard]] double predict(const QuantizedProblem&, const WgmmaW16Config&, const DeviceTraits&);

/// What a round takes in which every multiprocessor has a whole tile, one block each: its products, and what
/// lies between those and the next tile's.
struct RoundCost {
    double products_us = 0;
    double end_us = 0;
};
[[nodiscard]] RoundCost round_cost(const QuantizedProblem&, const linear::gemm::Geometry&, w16::Form,
                                   const DeviceTraits&);
/// The products of a call beside what memory needs for its bytes, and what a call costs before and after.
[[nodiscard]] double call_us(const QuantizedProblem&, double products_us, const DeviceTraits&);

}  // namespace hone::quantized_linear
