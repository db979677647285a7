// How attention_prefill/wgmma/kernel.cu is launched, and what follows from a config.
#pragma once

#include "kernel_templates/attention_prefill/attention_prefill.h"
#include "kernel_templates/attention_prefill/wgmma/geometry.cuh"
#include "kernel_templates/device_traits.h"
#include "kernel_templates/kit/tunables.h"

namespace hone::attention_prefill::warpgroup {

struct WgmmaConfig {
    std::int64_t consumers = 1;
    std::int64_t tile_n = 64;
    std::int64_t stages = 2;
    std::int64_t query_stages = 1;
    std::int64_t blocks_per_sm = 1;
    std::int64_t query_in_registers = 0;
    std::int64_t section_mib = 24;
    std::int64_t dynamic = 0;
    std::int64_t softmax_first = 0;
    std::int64_t late_maxima = 0;
    std::int64_t programmatic = 0;
};

inline constexpr auto kernel_args =
    later_last(join(call_args, {tensor_map_arg(0, "q_map"), tensor_map_arg(1, "k_map"),
                                tensor_map_arg(2, "v_map"), narrow_value_arg(0, "section_rows"),
                                narrow_value_arg(1, "section_heads"), narrow_value_arg(2, "section_count")}));
inline constexpr Kernel kernels[] = {{"attention_prefill_wgmma", kernel_args}};

[[nodiscard]] Geometry geometry(const AttentionProblem&, const WgmmaConfig&);
/// A section has as many heads as have their keys and values in section_mib of level 2 together.
[[nodiscard]] Sections sections(const AttentionProblem&, const WgmmaConfig&);

/// Tiles of a head, and of all.
[[nodiscard]] std::int64_t rows(const AttentionProblem&, const Geometry&);
[[nodiscard]] std::int64_t tiles(const AttentionProblem&, const Geometry&);
/// Blocks that are resident on the device at once.
[[nodiscard]] std::int64_t places(const WgmmaConfig&, const DeviceTraits&);

[[nodiscard]] Plan plan(const AttentionProblem&, const WgmmaConfig&, const DeviceTraits&);
/// 16 bytes of each tensor.
[[nodiscard]] inline std::int64_t access_elements(const AttentionProblem& p, const WgmmaConfig&) {
    return p.fp8_cache() ? 16 : 8;
}

}  // namespace hone::attention_prefill::warpgroup
