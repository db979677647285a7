// How shared_norm_quantized_linear/ring.cu is launched: as quantized_linear's ring, with room for tokens'
// factors.
#pragma once

#include "kernel_templates/quantized_linear/ring/plan.h"
#include "kernel_templates/shared_norm_quantized_linear/shared_norm_quantized_linear.h"

namespace hone::shared_norm_quantized_linear {

using quantized_linear::RingConfig;
using quantized_linear::RingGeometry;

[[nodiscard]] inline RingGeometry geometry(const SharedNormQuantizedProblem& p, const RingConfig& c) {
    RingGeometry g = quantized_linear::geometry(p.product(), c);
    g.factors = p.norm;
    return g;
}

inline constexpr auto ring_args = join(call_args, {tensor_map_arg(0, "x_map")});
inline constexpr Kernel ring_kernels[] = {{"shared_norm_quantized_linear_ring", ring_args}};

[[nodiscard]] inline Plan ring_plan(const SharedNormQuantizedProblem& p, const RingConfig& c,
                                    const DeviceTraits&) {
    return quantized_linear::ring_product(ring_kernels[0], p.product(), c, geometry(p, c));
}

}  // namespace hone::shared_norm_quantized_linear
