// How the variants mma and plain deal queries to blocks, on the host: tile.cuh has the device's side.
#pragma once

#include "kernel_templates/attention_prefill/attention_prefill.h"
#include "kernel_templates/device_traits.h"

namespace hone::attention_prefill {

/// What both kernels take: the call, and how many heads a section has (tile.cuh).
inline constexpr auto tile_args = later_last(join(call_args, {narrow_value_arg(0, "section")}));

struct TileLaunch {
    std::int64_t tile_m = 0;  ///< queries of a block, all of one head
    std::int64_t threads = 0;
    std::int64_t shared_bytes = 0;
    bool programmatic = false;
};
/// One launch with a block for each tile.
[[nodiscard]] Plan tile_plan(const Kernel&, const AttentionProblem&, const TileLaunch&, const DeviceTraits&);

}  // namespace hone::attention_prefill
