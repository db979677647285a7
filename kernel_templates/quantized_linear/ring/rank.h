// What variant ring costs.
#pragma once

#include "kernel_templates/quantized_linear/ring/plan.h"

namespace hone::quantized_linear {

/// What a thread may have: a quarter of a multiprocessor has a quarter of the registers, for whole warps.
[[nodiscard]] inline std::int64_t register_share(const RingGeometry& g, const RingConfig& c) {
    const std::int64_t quarters = ceil_div(g.threads(), 128);
    return 65536 / (128 * quarters * c.blocks_per_sm) / 8 * 8;
}

/// Microseconds of a call.
[[nodiscard]] double predict(const QuantizedProblem&, const RingConfig&, const DeviceTraits&);

}  // namespace hone::quantized_linear
