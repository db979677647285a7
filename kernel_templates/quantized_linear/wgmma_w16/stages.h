// How many stages a ring of wgmma_w16 needs, for the spaces of both operators that have it. Not in the plan,
// whose text is part of a template's hash.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernel_templates/linear/wgmma/product.h"

namespace hone::quantized_linear {

/// Whether the ring has room beside the stages that are worked on together: without a pause (0) two, since
/// codes are read ahead.
[[nodiscard]] inline bool has_stages(const linear::gemm::Geometry& g, std::int64_t stages_together) {
    return g.stages() >= std::max<std::int64_t>(3, (stages_together == 0 ? 2 : stages_together) + 2);
}

}  // namespace hone::quantized_linear
