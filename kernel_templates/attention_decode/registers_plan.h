// How attention_decode/registers.cu is launched.
#pragma once

#include "kernel_templates/attention_decode/cut.h"
#include "kernel_templates/kit/tunables.h"

namespace hone::attention_decode {

struct RegistersConfig {
    std::int64_t rows = 8;
    std::int64_t warps = 4;
    std::int64_t unit = 16;
    std::int64_t join = 0;
    std::int64_t side_by_side = 0;
    std::int64_t load_hint = 1;
    std::int64_t blocks_per_sm = 1;
};

inline constexpr Kernel registers_kernels[] = {{"attention_decode_registers", kernel_args},
                                               {"attention_decode_combine", kernel_args}};

[[nodiscard]] Cut cut(const DecodeProblem&, const RegistersConfig&);
[[nodiscard]] Plan registers_plan(const DecodeProblem&, const RegistersConfig&, const DeviceTraits&);
[[nodiscard]] inline std::int64_t registers_access_elements(const DecodeProblem& p, const RegistersConfig&) {
    return wide_access(p);
}

}  // namespace hone::attention_decode
