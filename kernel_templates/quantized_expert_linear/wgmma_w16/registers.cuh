// Registers of the roles of variant wgmma_w16 (kernel.cu). Plain C++ that both the host's rules and the
// kernel include, so that they cannot disagree.
#pragma once

#include "quantized_linear/wgmma_w16/stage.cuh"

namespace hone::quantized_expert_linear::w16 {

struct RoleRegisters {
    bool moves = false;  ///< the producers pass some of theirs on
    int launched = 0;
    int producer = 0;
    int consumer = 0;
};

/// As quantized_linear's variant; but producers that gather rows of x keep the numbers of these, and the
/// consumers get so much less, in steps of 8.
constexpr RoleRegisters registers_of(const linear::gemm::Geometry& g, bool gathers) {
    const quantized_linear::w16::Registers sorted = quantized_linear::w16::registers_of(g);
    const int kept = gathers ? 24 : 0;
    const int less = (kept / g.consumers + 7) / 8 * 8;
    const int consumer = sorted.consumer - less;
    if (!sorted.move() || consumer <= sorted.launched)
        return {.moves = false,
                .launched = sorted.launched,
                .producer = sorted.launched,
                .consumer = sorted.launched};
    return {
        .moves = true, .launched = sorted.launched, .producer = sorted.producer + kept, .consumer = consumer};
}

}  // namespace hone::quantized_expert_linear::w16
