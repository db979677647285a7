// How expert_linear/drawn/kernel.cu is launched.
#pragma once

#include "kernel_templates/expert_linear/wgmma/plan.h"

namespace hone::expert_linear {

struct DrawnConfig {
    std::int64_t tile_m = 128;
    std::int64_t tile_n = 16;
    std::int64_t consumers = 1;
    std::int64_t blocks_per_sm = 1;
    std::int64_t swapped = 1;
    std::int64_t l2_hint = 0;
    std::int64_t copied_x = 0;
    std::int64_t programmatic = 0;

    /// The same tile of variant wgmma.
    [[nodiscard]] WgmmaConfig dealt() const {
        return {.tile_m = tile_m,
                .tile_n = tile_n,
                .consumers = consumers,
                .blocks_per_sm = blocks_per_sm,
                .swapped = swapped,
                .l2_hint = l2_hint,
                .copied_x = copied_x,
                .programmatic = programmatic};
    }
};

inline constexpr Kernel drawn_kernels[] = {{"expert_linear_drawn", wgmma_args}, copies, combine};

[[nodiscard]] Plan drawn_plan(const ExpertProblem&, const DrawnConfig&, const DeviceTraits&);

[[nodiscard]] constexpr std::int64_t drawn_access_elements(const ExpertProblem&, const DrawnConfig&) {
    return 8;
}

}  // namespace hone::expert_linear
