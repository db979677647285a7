// What Trial::chain says beside the name of a step: that step was raced computed in two ways, and is shorter
// in the other one. Header only.
#pragma once

#include <string_view>

namespace hone::cache {

/// The end of the chain of a kernel that is the best in its step where that way to compute it is not kept.
inline constexpr std::string_view not_kept = " kept=no";

/// Whether a kernel was chosen in a step that is computed as it was raced.
[[nodiscard]] constexpr bool is_of_kept_step(std::string_view chain) {
    return !chain.empty() && !chain.ends_with(not_kept);
}

}  // namespace hone::cache
