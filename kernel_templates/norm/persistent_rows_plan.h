// How norm/persistent_rows.cuh is launched.
#pragma once

#include "kernel_templates/kit/launches.h"
#include "kernel_templates/norm/norm.h"

namespace hone::norm {

struct PersistentRowsConfig {
    std::int64_t threads = 128;
    std::int64_t lanes = 32;
    std::int64_t vector = 1;
    std::int64_t stages = 2;
    std::int64_t blocks_per_sm = 1;
    std::int64_t store_hint = 0;
    std::int64_t programmatic = 0;
};

inline constexpr Kernel persistent_rows_kernels[] = {{"norm_persistent_rows", call_args}};

/// Shared memory of a block: the rows of its groups' rings.
[[nodiscard]] std::int64_t ring_bytes(const NormProblem&, const PersistentRowsConfig&);
[[nodiscard]] Plan persistent_rows_plan(const NormProblem&, const PersistentRowsConfig&, const DeviceTraits&);

[[nodiscard]] constexpr std::int64_t persistent_rows_access_elements(const NormProblem&,
                                                                     const PersistentRowsConfig& c) {
    return c.vector;
}

}  // namespace hone::norm
