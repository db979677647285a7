// How expert_linear/strips.cu is launched.
#pragma once

#include "kernel_templates/expert_linear/combine.h"

namespace hone::expert_linear {

struct StripsConfig {
    std::int64_t tile_rows = 8;
    std::int64_t rows = 4;
    std::int64_t k_warps = 8;
    std::int64_t row_warps = 1;
    std::int64_t unroll = 2;
    std::int64_t load_hint = 1;
    std::int64_t programmatic = 0;

    [[nodiscard]] std::int64_t threads() const { return 32 * k_warps * row_warps; }
    /// Parts of 32 columns that a strip has, and rows of the weight that an instruction has.
    [[nodiscard]] std::int64_t parts() const { return 16 / tile_rows; }
    [[nodiscard]] std::int64_t mma_rows() const { return 8 / parts(); }
};

inline constexpr Kernel strips_kernels[] = {{"expert_linear_strips", call_args}, combine};

[[nodiscard]] constexpr std::int64_t strips_access_elements(const ExpertProblem&, const StripsConfig&) {
    return 8;
}

[[nodiscard]] inline Plan strips_plan(const ExpertProblem& p, const StripsConfig& c, const DeviceTraits&) {
    const std::int64_t blocks = p.most_tiles(c.tile_rows) * ceil_div(p.out, c.rows * c.row_warps);
    Launch product = launch(strips_kernels[0], grid_of(blocks), c.threads());
    product.programmatic = c.programmatic != 0;
    return combine_behind(p, plan_of(product), strips_kernels[1], result_vector(p, 8));
}

}  // namespace hone::expert_linear
