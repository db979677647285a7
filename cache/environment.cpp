#include "cache/environment.h"

#include "cache/packaged.h"

#include <fmt/format.h>

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

/// "HOME is unset", "HOME is 'home', no absolute path"
std::string why_no_folder(const char* name, const std::optional<std::string>& path) {
    return path ? fmt::format("{} is '{}', no absolute path", name, *path) : fmt::format("{} is unset", name);
}

}  // namespace

Environment read_environment() {
    return {.hone_cache = variable("HONE_CACHE"),
            .hone_site_cache = variable("HONE_SITE_CACHE"),
            .xdg_cache_home = variable("XDG_CACHE_HOME"),
            .home = variable("HOME"),
            .hone_packaged = variable("HONE_PACKAGED")};
}

LayerPaths layer_paths(const Environment& environment) {
    LayerPaths paths{.site = environment.hone_site_cache, .user = {}};
    if (environment.hone_cache) {
        paths.user = *environment.hone_cache;
    } else if (is_absolute(environment.xdg_cache_home)) {
        paths.user = std::filesystem::path(*environment.xdg_cache_home) / "hone" / "cache.db";
    } else if (is_absolute(environment.home)) {
        paths.user = std::filesystem::path(*environment.home) / ".cache" / "hone" / "cache.db";
    } else {
        throw CacheError(
            CacheError::Kind::unusable,
            fmt::format("no place for the cache is known: HONE_CACHE is unset, {} and {}",
                        why_no_folder("XDG_CACHE_HOME", environment.xdg_cache_home),
                        why_no_folder("HOME", environment.home)),
            "set HONE_CACHE to a file, such as /var/tmp/me/hone/cache.db in a directory of your own");
    }
    return paths;
}

LayerPaths layer_paths() { return layer_paths(read_environment()); }

LayerPaths known_layer_paths(const std::function<void(const CacheError&)>& warn) {
    const Environment environment = read_environment();
    try {
        return layer_paths(environment);
    } catch (const CacheError& nowhere) {
        warn(nowhere);
        return {.site = environment.hone_site_cache, .user = {}};
    }
}

std::span<const PackagedBundle> packaged_layer(const WarningSink& warn) {
    const std::string word = read_environment().hone_packaged.value_or("on");
    if (word == "off") return {};
    if (word != "on" && warn)
        warn(fmt::format(
            "HONE_PACKAGED is '{}', allowed: off, on; the winners that ship with the build are in use",
            word));
    return packaged_bundles();
}

}  // namespace hone::cache
