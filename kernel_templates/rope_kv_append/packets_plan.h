// How rope_kv_append/packets.cu is launched, and what follows from a config.
#pragma once

#include "kernel_templates/device_traits.h"
#include "kernel_templates/kit/tunables.h"
#include "kernel_templates/rope_kv_append/rope_kv_append.h"

namespace hone::rope_kv_append {

struct PacketsConfig {
    std::int64_t threads = 128;
    std::int64_t vector = 2;
    std::int64_t heads_a_thread = 1;
    std::int64_t early_weights = 0;
    std::int64_t load_hint = 0;
    std::int64_t programmatic = 0;
};

inline constexpr Kernel packets_kernels[] = {{"rope_kv_append_packets", call_args}};

/// Lanes that share a head: a power of two, as in packets.cu.
[[nodiscard]] std::int64_t lanes(const RopeProblem&, const PacketsConfig&);
/// Heads side by side in a block.
[[nodiscard]] std::int64_t groups(const RopeProblem&, const PacketsConfig&);
[[nodiscard]] std::int64_t blocks_a_token(const RopeProblem&, const PacketsConfig&);

[[nodiscard]] Plan packets_plan(const RopeProblem&, const PacketsConfig&, const DeviceTraits&);
[[nodiscard]] constexpr std::int64_t packets_access_elements(const RopeProblem&, const PacketsConfig& c) {
    return c.vector;
}

}  // namespace hone::rope_kv_append
