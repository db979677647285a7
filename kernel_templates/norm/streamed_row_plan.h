// How norm/streamed_row.cuh is launched.
#pragma once

#include "kernel_templates/kit/launches.h"
#include "kernel_templates/norm/norm.h"

namespace hone::norm {

struct StreamedRowConfig {
    std::int64_t threads = 128;
    std::int64_t vector = 1;
    std::int64_t store_hint = 0;
    std::int64_t programmatic = 0;
};

inline constexpr Kernel streamed_row_kernels[] = {{"norm_streamed_row", call_args}};

[[nodiscard]] Plan streamed_row_plan(const NormProblem&, const StreamedRowConfig&, const DeviceTraits&);

[[nodiscard]] constexpr std::int64_t streamed_row_access_elements(const NormProblem&,
                                                                  const StreamedRowConfig& c) {
    return c.vector;
}

}  // namespace hone::norm
