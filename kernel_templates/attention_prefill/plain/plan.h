// How attention_prefill/plain/kernel.cu is launched, and what follows from a config.
#pragma once

#include "kernel_templates/attention_prefill/plain/geometry.cuh"
#include "kernel_templates/attention_prefill/tile.h"
#include "kernel_templates/kit/tunables.h"

namespace hone::attention_prefill::cuda_cores {

struct PlainConfig {
    std::int64_t tile_m = 32;
    std::int64_t tile_n = 32;
    std::int64_t thread_m = 4;
    std::int64_t columns = 16;
    std::int64_t vector = 1;
    std::int64_t programmatic = 0;
};

inline constexpr Kernel kernels[] = {{"attention_prefill_plain", tile_args}};

[[nodiscard]] Geometry geometry(const AttentionProblem&, const PlainConfig&);
[[nodiscard]] Plan plan(const AttentionProblem&, const PlainConfig&, const DeviceTraits&);
[[nodiscard]] constexpr std::int64_t access_elements(const AttentionProblem&, const PlainConfig& c) {
    return c.vector;
}

}  // namespace hone::attention_prefill::cuda_cores
