// Constraints that variants of several families have. C is the config's struct.
#pragma once

#include <array>

#include "kernel_templates/kit/typed.h"

namespace hone {

/// For a config with a tunable `programmatic`.
template <class C>
inline constexpr Constraint programmatic_needs_sm_90 = rule("programmatic dependent launch needs sm_90",
                                                            [](const C& c, const DeviceTraits& traits) {
                                                                return c.programmatic == 0 ||
                                                                       traits.has_programmatic_launch();
                                                            });

/// For a config with tunables `lanes` and `threads`.
template <class C>
inline constexpr Constraint lanes_fit_block = rule("a row's lanes must fit its block",
                                                   [](const C& c) { return c.lanes <= c.threads; });

/// One table behind another.
template <std::size_t first, std::size_t second>
[[nodiscard]] consteval std::array<Constraint, first + second> joined(
    const std::array<Constraint, first>& a, const std::array<Constraint, second>& b) {
    std::array<Constraint, first + second> all{};
    for (std::size_t i = 0; i < first; ++i) all[i] = a[i];
    for (std::size_t i = 0; i < second; ++i) all[first + i] = b[i];
    return all;
}

}  // namespace hone
