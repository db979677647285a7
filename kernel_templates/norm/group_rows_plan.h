// How norm/group_rows.cuh is launched.
#pragma once

#include "kernel_templates/kit/launches.h"
#include "kernel_templates/norm/norm.h"

namespace hone::norm {

struct GroupRowsConfig {
    std::int64_t threads = 128;
    std::int64_t lanes = 32;
    std::int64_t vector = 1;
    std::int64_t rows = 1;
    std::int64_t early_weights = 0;
    std::int64_t load_hint = 0;
    std::int64_t store_hint = 0;
    std::int64_t programmatic = 0;
};

inline constexpr Kernel group_rows_kernels[] = {{"norm_group_rows", call_args}};

[[nodiscard]] Plan group_rows_plan(const NormProblem&, const GroupRowsConfig&, const DeviceTraits&);

[[nodiscard]] constexpr std::int64_t group_rows_access_elements(const NormProblem&,
                                                                const GroupRowsConfig& c) {
    return c.vector;
}

}  // namespace hone::norm
