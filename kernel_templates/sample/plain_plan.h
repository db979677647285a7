// How sample/plain.cu is launched.
#pragma once

#include "kernel_templates/kit/launches.h"
#include "kernel_templates/sample/sample.h"

namespace hone::sample {

struct PlainConfig {
    std::int64_t threads = 512;
    std::int64_t vector = 1;
    std::int64_t programmatic = 0;
};

inline constexpr Kernel plain_kernels[] = {{"sample_plain", call_args}};

[[nodiscard]] Plan plain_plan(const SampleProblem&, const PlainConfig&, const DeviceTraits&);
[[nodiscard]] constexpr std::int64_t plain_access_elements(const SampleProblem&, const PlainConfig& c) {
    return c.vector;
}

}  // namespace hone::sample
