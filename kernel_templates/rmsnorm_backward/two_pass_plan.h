// How rmsnorm_backward/two_pass.cu is launched.
#pragma once

#include "kernel_templates/rmsnorm_backward/backward.h"

namespace hone::rmsnorm_backward {

struct TwoPassConfig {
    std::int64_t threads = 128;
    std::int64_t vector = 1;
    std::int64_t chunks = 1;
    std::int64_t store_hint = 0;
    std::int64_t sum_lanes = 8;
    std::int64_t programmatic = 0;
};

inline constexpr Kernel two_pass_kernels[] = {{"rmsnorm_backward_find_factors", call_args},
                                              {"rmsnorm_backward_apply_factors", call_args},
                                              {"rmsnorm_backward_sum_partials", call_args}};

/// Blocks across the columns.
[[nodiscard]] std::int64_t tiles(const BackwardProblem&, const TwoPassConfig&);
[[nodiscard]] Plan two_pass_plan(const BackwardProblem&, const TwoPassConfig&, const DeviceTraits&);
[[nodiscard]] constexpr std::int64_t two_pass_access_elements(const BackwardProblem&,
                                                              const TwoPassConfig& c) {
    return c.vector;
}

}  // namespace hone::rmsnorm_backward
