// Long lists of names as messages have them. Header only.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>

namespace hone::models {

/// "a, b and 3 more": `most` of them by name.
[[nodiscard]] inline std::string first_names(std::span<const std::string> names, std::size_t most) {
    const std::size_t named = std::min(names.size(), most);
    const std::string first = fmt::format("{}", fmt::join(names.first(named), ", "));
    return names.size() > named ? fmt::format("{} and {} more", first, names.size() - named) : first;
}

}  // namespace hone::models
