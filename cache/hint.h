// What to do about a cache that cannot be used, where it is not the one that HONE_CACHE names.
#pragma once

#include <string>
#include <string_view>

#include "cache/error.h"

namespace hone::cache {

/// The hint with `set` in place of "set HONE_CACHE to", as hints have it: "set HONE_SITE_CACHE to", "name".
[[nodiscard]] inline std::string hint_for_other(const CacheError& error, std::string_view set) {
    constexpr std::string_view users = "set HONE_CACHE to";
    std::string hint = error.hint();
    const std::size_t place = hint.find(users);
    return place == std::string::npos ? hint : hint.replace(place, users.size(), set);
}

}  // namespace hone::cache
