// How many stages a ring of wgmma_w16 needs, for the spaces of both operators that have it. Not in the plan,
// whose text is part of a template's hash.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernel_templates/quantized_linear/wgmma_w16/plan.h"

namespace hone::quantized_linear {

/// Whether the ring has room for the stages that are worked on, and two that come meanwhile.
[[nodiscard]] inline bool has_stages(const linear::gemm::Geometry& g, std::int64_t stages_together) {
    return g.stages() >= std::max(3, form_of(stages_together).held() + 2);
}

}  // namespace hone::quantized_linear
