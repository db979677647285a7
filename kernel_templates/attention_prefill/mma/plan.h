// How attention_prefill/mma/kernel.cu is launched, and what follows from a config.
#pragma once

#include "kernel_templates/attention_prefill/mma/geometry.cuh"
#include "kernel_templates/attention_prefill/tile.h"
#include "kernel_templates/kit/tunables.h"

namespace hone::attention_prefill::warp_mma {

struct MmaConfig {
    std::int64_t warps = 4;
    std::int64_t warp_rows = 16;
    std::int64_t tile_n = 16;
    std::int64_t stages = 2;
    std::int64_t query_in_registers = 0;
    std::int64_t blocks_per_sm = 1;
    std::int64_t programmatic = 0;
};

inline constexpr Kernel kernels[] = {{"attention_prefill_mma", tile_args}};

[[nodiscard]] Geometry geometry(const AttentionProblem&, const MmaConfig&);
[[nodiscard]] Plan plan(const AttentionProblem&, const MmaConfig&, const DeviceTraits&);
[[nodiscard]] constexpr std::int64_t access_elements(const AttentionProblem&, const MmaConfig&) { return 8; }

}  // namespace hone::attention_prefill::warp_mma
