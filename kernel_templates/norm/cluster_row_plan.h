// How norm/cluster_row.cuh is launched.
#pragma once

#include "kernel_templates/kit/launches.h"
#include "kernel_templates/norm/norm.h"

namespace hone::norm {

struct ClusterRowConfig {
    std::int64_t threads = 512;
    std::int64_t cluster = 2;
    std::int64_t vector = 1;
    std::int64_t early_weights = 0;
    std::int64_t load_hint = 0;
    std::int64_t store_hint = 0;
    std::int64_t programmatic = 0;
};

inline constexpr Kernel cluster_row_kernels[] = {{"norm_cluster_row", call_args}};

[[nodiscard]] Plan cluster_row_plan(const NormProblem&, const ClusterRowConfig&, const DeviceTraits&);

[[nodiscard]] constexpr std::int64_t cluster_row_access_elements(const NormProblem&,
                                                                 const ClusterRowConfig& c) {
    return c.vector;
}

}  // namespace hone::norm
