// How attention_prefill/wgmma_tf32/kernel.cu is launched, and what follows from a config.
#pragma once

#include "kernel_templates/attention_prefill/attention_prefill.h"
#include "kernel_templates/attention_prefill/wgmma_tf32/geometry.cuh"
#include "kernel_templates/device_traits.h"
#include "kernel_templates/kit/tunables.h"

namespace hone::attention_prefill::tf32 {

struct WgmmaTf32Config {
    std::int64_t consumers = 1;
    std::int64_t tile_n = 32;
    std::int64_t stages = 1;
    std::int64_t programmatic = 0;
};

inline constexpr auto kernel_args = later_last(std::to_array(call_args));
inline constexpr Kernel kernels[] = {{"attention_prefill_wgmma_tf32", kernel_args}};

[[nodiscard]] Geometry geometry(const AttentionProblem&, const WgmmaTf32Config&);
/// Tiles of all heads and sequences, as if every sequence were the longest.
[[nodiscard]] std::int64_t tiles(const AttentionProblem&, const Geometry&);

[[nodiscard]] Plan plan(const AttentionProblem&, const WgmmaTf32Config&, const DeviceTraits&);
[[nodiscard]] constexpr std::int64_t access_elements(const AttentionProblem&, const WgmmaTf32Config&) {
    return 4;
}

}  // namespace hone::attention_prefill::tf32
