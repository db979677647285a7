// How attention_decode/plain.cu is launched.
#pragma once

#include "kernel_templates/attention_decode/cut.h"
#include "kernel_templates/kit/tunables.h"

namespace hone::attention_decode {

struct PlainConfig {
    std::int64_t rows = 2;
    std::int64_t warps = 4;
    std::int64_t unit = 16;
    std::int64_t vector = 1;
    std::int64_t join = 0;
    std::int64_t side_by_side = 0;
    std::int64_t blocks_per_sm = 1;
};

inline constexpr Kernel plain_kernels[] = {{"attention_decode_plain", kernel_args},
                                           {"attention_decode_combine", kernel_args}};

[[nodiscard]] Cut cut(const DecodeProblem&, const PlainConfig&);
[[nodiscard]] Plan plain_plan(const DecodeProblem&, const PlainConfig&, const DeviceTraits&);
[[nodiscard]] inline std::int64_t plain_access_elements(const DecodeProblem&, const PlainConfig& c) {
    return c.vector;
}

}  // namespace hone::attention_decode
