// What a config of wgmma_w16 needs, for the spaces of all variants that have its products: stages of the
// ring, and registers. Not in the plan, whose text is part of a template's hash.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernel_templates/quantized_linear/wgmma_w16/plan.h"

namespace hone::quantized_linear {

/// Whether the ring has room for the stages that are worked on, and two that come meanwhile.
[[nodiscard]] inline bool has_stages(const linear::gemm::Geometry& g, std::int64_t stages_together) {
    return g.stages() >= std::max(3, form_of(stages_together).held() + 2);
}

/// A consumer's sums, fragments, codes and addresses, or parts that are added to the sums, against what its
/// thread has. Without a pause there are two sets of fragments and of codes.
[[nodiscard]] inline bool fits_registers(const QuantizedProblem& p, const linear::gemm::Geometry& g,
                                         const WgmmaW16Config& c) {
    const int used = g.sums() + 64 + (p.gated ? 16 : 0) + (p.zeros ? 8 : 0) + (c.tail_split != 0 ? 8 : 0) +
                     (form_of(c.stages_together).pauses() ? 0 : 16);
    // An instruction's sums must fit what the launch gives, too.
    const w16::Registers registers = w16::registers_of(g);
    return used <= registers.consumer && g.tile_n / 2 + 30 <= registers.launched;
}

}  // namespace hone::quantized_linear
