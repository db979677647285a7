// The environment variables that name cache files, read in this one place.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "cache/layers.h"

namespace hone::cache {

/// Empty variables count as unset.
struct Environment {
    std::optional<std::string> hone_cache;
    std::optional<std::string> hone_site_cache;
    std::optional<std::string> xdg_cache_home;
    std::optional<std::string> home;
    std::optional<std::string> hone_packaged;  ///< "off": without the winners that ship with the build; "on"
};

/// Reads no variable in a program that runs with more rights than its caller.
[[nodiscard]] Environment read_environment();

[[nodiscard]] LayerPaths layer_paths(const Environment& environment);

}  // namespace hone::cache
