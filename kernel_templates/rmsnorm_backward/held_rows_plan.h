// How rmsnorm_backward/held_rows.cu is launched.
#pragma once

#include "kernel_templates/rmsnorm_backward/backward.h"

namespace hone::rmsnorm_backward {

struct HeldRowsConfig {
    std::int64_t threads = 128;
    std::int64_t lanes = 8;
    std::int64_t vector = 1;
    std::int64_t ahead = 0;
    std::int64_t blocks_per_sm = 1;
    std::int64_t load_hint = 0;
    std::int64_t store_hint = 0;
    std::int64_t sum_lanes = 8;
    std::int64_t programmatic = 0;
};

inline constexpr Kernel held_rows_kernels[] = {{"rmsnorm_backward_held_rows", call_args},
                                               {"rmsnorm_backward_sum_partials", call_args}};

/// Resident blocks of the first launch, each of which leaves a partial row.
[[nodiscard]] std::int64_t block_count(const BackwardProblem&, const HeldRowsConfig&, const DeviceTraits&);
[[nodiscard]] Plan held_rows_plan(const BackwardProblem&, const HeldRowsConfig&, const DeviceTraits&);
[[nodiscard]] constexpr std::int64_t held_rows_access_elements(const BackwardProblem&,
                                                               const HeldRowsConfig& c) {
    return c.vector;
}

}  // namespace hone::rmsnorm_backward
