// How shared_norm_linear/ring.cu is launched: as linear's ring, with room for tokens' factors.
#pragma once

#include "kernel_templates/linear/ring/plan.h"
#include "kernel_templates/shared_norm_linear/shared_norm_linear.h"

namespace hone::shared_norm_linear {

using linear::RingConfig;
using linear::RingGeometry;

[[nodiscard]] inline RingGeometry geometry(const SharedNormProblem& p, const RingConfig& c) {
    RingGeometry g = linear::plain_geometry(p.product(), c);
    g.factors = p.norm;
    return g;
}

inline constexpr auto ring_args = join(
    call_args, {tensor_map_arg(0, "weight_map"), tensor_map_arg(1, "up_map"), tensor_map_arg(2, "x_map")});
inline constexpr Kernel ring_kernels[] = {{"shared_norm_linear_ring", ring_args}};

[[nodiscard]] inline Plan ring_plan(const SharedNormProblem& p, const RingConfig& c,
                                    const DeviceTraits& traits) {
    return linear::ring_product(ring_kernels[0], p.product(), c, geometry(p, c), traits);
}

}  // namespace hone::shared_norm_linear
