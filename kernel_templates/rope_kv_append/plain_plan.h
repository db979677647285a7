// How rope_kv_append/plain.cu is launched.
#pragma once

#include "kernel_templates/device_traits.h"
#include "kernel_templates/kit/tunables.h"
#include "kernel_templates/rope_kv_append/rope_kv_append.h"

namespace hone::rope_kv_append {

struct PlainConfig {
    std::int64_t threads = 128;
    std::int64_t programmatic = 0;
};

inline constexpr Kernel plain_kernels[] = {{"rope_kv_append_plain", call_args}};

[[nodiscard]] Plan plain_plan(const RopeProblem&, const PlainConfig&, const DeviceTraits&);
[[nodiscard]] constexpr std::int64_t plain_access_elements(const RopeProblem&, const PlainConfig&) {
    return 1;
}

}  // namespace hone::rope_kv_append
