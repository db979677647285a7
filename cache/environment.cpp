#include "cache/environment.h"

#include "cache/packaged.h"

#include <cstdlib>
#include <filesystem>

namespace hone::cache {
namespace {

std::optional<std::string> variable(const char* name) {
    const char* value = ::secure_getenv(name);
    return value != nullptr && *value != '\0' ? std::optional<std::string>(value) : std::nullopt;
}

/// The XDG specification says to ignore a relative path; a relative HOME is of as little use.
bool is_absolute(const std::optional<std::string>& path) { return path && path->starts_with('/'); }

}  // namespace

Environment read_environment() {
    return {.hone_cache = variable("HONE_CACHE"),
            .hone_site_cache = variable("HONE_SITE_CACHE"),
            .xdg_cache_home = variable("XDG_CACHE_HOME"),
            .home = variable("HOME"),
            .hone_packaged = variable("HONE_PACKAGED")};
}

LayerPaths layer_paths(const Environment& environment) {
    LayerPaths paths;
    if (environment.hone_site_cache) paths.site = *environment.hone_site_cache;
    if (environment.hone_cache) {
        paths.user = *environment.hone_cache;
    } else if (is_absolute(environment.xdg_cache_home)) {
        paths.user = std::filesystem::path(*environment.xdg_cache_home) / "hone" / "cache.db";
    } else if (is_absolute(environment.home)) {
        paths.user = std::filesystem::path(*environment.home) / ".cache" / "hone" / "cache.db";
    } else {
        throw CacheError(
            CacheError::Kind::unusable,
            "no place for the cache is known: HONE_CACHE, XDG_CACHE_HOME and HOME are unset",
            "set HONE_CACHE to a file, such as /var/tmp/me/hone/cache.db in a directory of your own");
    }
    return paths;
}

LayerPaths layer_paths() { return layer_paths(read_environment()); }

std::span<const PackagedBundle> packaged_layer() {
    if (read_environment().hone_packaged == "off") return {};
    return packaged_bundles();
}

}  // namespace hone::cache
