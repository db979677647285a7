// What variants answer the contract (family.h) where problem and config make no difference.
#pragma once

#include <cstdint>
#include <optional>

#include "kernel_templates/family.h"

namespace hone {

/// Variant::fallback of what is never taken unmeasured.
[[nodiscard]] inline std::optional<Config> no_fallback(const Problem&, const DeviceTraits&) {
    return std::nullopt;
}

/// Variant::access_elements of kernels whose accesses all have so many elements.
template <std::int64_t elements>
[[nodiscard]] constexpr std::int64_t accesses_of(const Problem&, const Config&) {
    return elements;
}

}  // namespace hone
