// Plain integer arithmetic that plans and cost models share.
#pragma once

#include <cstdint>

namespace hone {

/// a / b rounded up, for a from 0 and b from 1.
[[nodiscard]] constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
/// The smallest multiple of `unit` that is at least `value`.
[[nodiscard]] constexpr std::int64_t round_up(std::int64_t value, std::int64_t unit) {
    return ceil_div(value, unit) * unit;
}

}  // namespace hone
