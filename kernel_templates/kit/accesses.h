// How wide a thread's memory accesses may be.
#pragma once

#include <cstdint>

namespace hone {

/// Widest access in elements that fits 16 bytes and divides a row of `extent` elements.
[[nodiscard]] constexpr std::int64_t widest_vector(std::int64_t extent, std::int64_t element_bytes) {
    std::int64_t vector = 16 / element_bytes;
    while (extent % vector != 0) vector /= 2;
    return vector;
}

/// Whether accesses have that width or half of it: narrower ones never win.
[[nodiscard]] constexpr bool is_wide_access(std::int64_t extent, std::int64_t element_bytes,
                                            std::int64_t vector) {
    const std::int64_t widest = widest_vector(extent, element_bytes);
    return vector == widest || (vector * 2 == widest && vector * element_bytes >= 4);
}

}  // namespace hone
