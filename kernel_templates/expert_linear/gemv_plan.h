// How expert_linear/gemv.cu is launched.
#pragma once

#include "kernel_templates/expert_linear/combine.h"

namespace hone::expert_linear {

struct GemvConfig {
    std::int64_t tile_rows = 1;
    std::int64_t rows = 1;
    std::int64_t k_warps = 1;
    std::int64_t row_warps = 1;
    std::int64_t unroll = 1;
    std::int64_t load_hint = 1;
    std::int64_t programmatic = 0;

    [[nodiscard]] std::int64_t threads() const { return 32 * k_warps * row_warps; }
};

inline constexpr Kernel gemv_kernels[] = {{"expert_linear_gemv", call_args}, combine};

/// Elements of 16 bytes.
[[nodiscard]] inline std::int64_t gemv_access_elements(const ExpertProblem& p, const GemvConfig&) {
    return 16 / p.element_bytes();
}

[[nodiscard]] inline Plan gemv_plan(const ExpertProblem& p, const GemvConfig& c, const DeviceTraits&) {
    const std::int64_t blocks = p.most_tiles(c.tile_rows) * ceil_div(p.out, c.rows * c.row_warps);
    Launch product = launch(gemv_kernels[0], grid_of(blocks), c.threads());
    product.programmatic = c.programmatic != 0;
    return combine_behind(p, plan_of(product), gemv_kernels[1], result_vector(p, gemv_access_elements(p, c)));
}

}  // namespace hone::expert_linear
