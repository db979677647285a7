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
    std::int64_t ahead = 0;
};

inline constexpr auto ring_args =
    later_last(join(call_args, {tensor_map_arg(0, "k_map"), tensor_map_arg(1, "v_map")}));
inline constexpr Kernel ring_kernels[] = {{"attention_decode_ring", ring_args},
                                          {"attention_decode_combine", kernel_args}};

[[nodiscard]] Ring shape(const DecodeProblem&, const RingConfig&);
[[nodiscard]] Cut cut(const DecodeProblem&, const RingConfig&);
/// Indices of the scalars that describe a cache, which attention_append has elsewhere.
struct CacheScalars {
    std::uint8_t kv_len = 0;
    std::uint8_t batch = 0;
    std::uint8_t pool_pages = 0;
    std::uint8_t token_stride = 0;
    std::uint8_t head_stride = 0;
    std::uint8_t stride = 0;
};
/// k_cache or v_cache: head_dim, tokens of a sequence or page, heads, sequences or pages.
[[nodiscard]] TensorMap cache_map(const DecodeProblem&, const Ring&, int pointer, const CacheScalars&);
/// What the ring's plan has beside that of any cut (cut.h), but for the maps.
[[nodiscard]] Plan ring_launches(std::span<const Kernel> kernels, const DecodeProblem&, const RingConfig&,
                                 const DeviceTraits&);
[[nodiscard]] Plan ring_plan(const DecodeProblem&, const RingConfig&, const DeviceTraits&);
[[nodiscard]] inline std::int64_t ring_access_elements(const DecodeProblem& p, const RingConfig&) {
    return wide_access(p);
}

}  // namespace hone::attention_decode
