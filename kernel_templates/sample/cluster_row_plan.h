// How sample/cluster_row.cu is launched.
#pragma once

#include "kernel_templates/kit/launches.h"
#include "kernel_templates/sample/geometry.cuh"
#include "kernel_templates/sample/sample.h"
#include "kernel_templates/sample/values.cuh"

namespace hone::sample {

struct ClusterRowConfig {
    std::int64_t threads = 512;
    std::int64_t cluster = 8;
    std::int64_t vector = 1;
    std::int64_t home = 0;
    std::int64_t load_hint = 0;
    std::int64_t programmatic = 0;
};

inline constexpr Kernel cluster_row_kernels[] = {{"sample_cluster_row", call_args}};

[[nodiscard]] constexpr bool counts_values(const ClusterRowConfig& c) { return c.home == 2; }

/// How a row is cut.
[[nodiscard]] constexpr Geometry geometry(const SampleProblem& p, const ClusterRowConfig& c) {
    return {p.vocabulary, static_cast<int>(c.cluster), static_cast<int>(c.threads),
            static_cast<int>(c.vector)};
}
[[nodiscard]] std::int64_t shared_bytes(const SampleProblem&, const ClusterRowConfig&);
[[nodiscard]] Plan cluster_row_plan(const SampleProblem&, const ClusterRowConfig&, const DeviceTraits&);
[[nodiscard]] constexpr std::int64_t cluster_row_access_elements(const SampleProblem&,
                                                                 const ClusterRowConfig& c) {
    return c.vector;
}

}  // namespace hone::sample
