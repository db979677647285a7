// Variant plain of the families whose products share norms: its space and preference.
#pragma once

#include <cstdint>
#include <optional>

#include "kernel_templates/kit/ceil_div.h"
#include "kernel_templates/kit/rules.h"
#include "kernel_templates/kit/tunables.h"
#include "kernel_templates/shared_norm_linear/plain_launch.h"

namespace hone::shared_norm_linear {

inline constexpr auto plain_tunables = tunables_of({
    tunable<&PlainConfig::tokens>("of a block", {1, 4, 8}),
    programmatic_launch<&PlainConfig::programmatic>(),
});

inline constexpr Constraint plain_constraints[] = {programmatic_needs_sm_90<PlainConfig>};

template <class P>
[[nodiscard]] std::optional<PlainConfig> plain_fallback(const P& p, const DeviceTraits& traits) {
    return PlainConfig{.tokens = p.tokens > 4   ? 8
                                 : p.tokens > 1 ? 4
                                                : 1,
                       .programmatic = traits.has_programmatic_launch() ? 1 : 0};
}

/// Modelled microseconds: a fifth of the bandwidth, and x from level 1 for each column.
template <class P>
[[nodiscard]] double predict_plain_us(const P& p, const PlainConfig& c, const DeviceTraits& traits) {
    const double groups = static_cast<double>(ceil_div(p.tokens, c.tokens));
    const double elements = static_cast<double>(p.out) * static_cast<double>(p.in) * (p.gated ? 2 : 1);
    return 10.0 +
           groups * elements * (2.0 + static_cast<double>(c.tokens)) / (0.2e-6 * traits.memory_bytes_per_s);
}

}  // namespace hone::shared_norm_linear
