// How public arguments become those of a Call.
#pragma once

#include <cstdint>

#include "kernel_templates/plan.h"

namespace hone::runtime {

/// A Call takes inputs and outputs alike.
[[nodiscard]] inline void* pointer(const void* tensor) noexcept { return const_cast<void*>(tensor); }

/// 0 means rows without gaps, of `row` elements.
[[nodiscard]] constexpr std::int64_t stride(std::int64_t given, std::int64_t row) noexcept {
    return given == 0 ? row : given;
}

}  // namespace hone::runtime
