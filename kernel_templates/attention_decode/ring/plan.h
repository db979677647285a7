// How attention_decode/ring/kernel.cu is launched, and what follows from a config.
#pragma once

#include "kernel_templates/attention_decode/cut.h"
#include "kernel_templates/kit/tunables.h"

namespace hone::attention_decode {

struct RingConfig {
    std::int64_t rows = 8;
    std::int64_t warps = 4;
    std::int64_t unit = 16;
    std::int64_t stages = 4;
    std::int64_t producers = 0;
    std::int64_t cluster = 1;
    std::int64_t join = 0;
    std::int64_t side_by_side = 0;
    std::int64_t blocks_per_sm = 1;
};

inline constexpr auto ring_args =
    later_last(join(call_args, {tensor_map_arg(0, "k_map"), tensor_map_arg(1, "v_map")}));
inline constexpr Kernel ring_kernels[] = {{"attention_decode_ring", ring_args},
                                          {"attention_decode_combine", kernel_args}};

[[nodiscard]] Ring shape(const DecodeProblem&, const RingConfig&);
[[nodiscard]] Cut cut(const DecodeProblem&, const RingConfig&);
[[nodiscard]] Plan ring_plan(const DecodeProblem&, const RingConfig&, const DeviceTraits&);
[[nodiscard]] inline std::int64_t ring_access_elements(const DecodeProblem& p, const RingConfig&) {
    return wide_access(p);
}

}  // namespace hone::attention_decode
