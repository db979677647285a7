// The cache layers of this machine and the immutable snapshot that dispatch works from: packaged (read-only,
// part of the build) <- site <- user; later layers win, unless trust says otherwise.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cache/cache.h"
#include "cache/packaged.h"

namespace hone::cache {

struct LayerPaths {
    std::optional<std::filesystem::path> site;  ///< HONE_SITE_CACHE
    std::filesystem::path
        user;  ///< HONE_CACHE, else $XDG_CACHE_HOME/hone/cache.db, else ~/.cache/hone/cache.db
};
/// Throws CacheError (unusable) when no place is known: HOME, XDG_CACHE_HOME and HONE_CACHE are all unset.
[[nodiscard]] LayerPaths layer_paths();

/// The bundles that ship with this build; none with HONE_PACKAGED=off.
[[nodiscard]] std::span<const PackagedBundle> packaged_layer();

struct LoadedWinner {
    Trial trial;
    Trust trust = Trust::unusable;
    std::string layer;  ///< "user", "site", "packaged"
};

/// Called at most once a layer, with one sentence, when a layer cannot be read; dispatch goes on without it.
using WarningSink = std::function<void(const std::string&)>;

/// Trust of a stored winner on this GPU with this toolchain and this build's templates.
[[nodiscard]] Trust trust_of(const Trial&, const GpuKey&, const Toolchain&);

/// Every winner of every layer that is not `unusable` here. Per (family, static, dynamic, GPU kind) the best:
/// trust first (exact, compatible, foreign, stale), then measured before replayed before predicted, then the
/// later layer, then the newer. Never throws for a damaged, newer, unreadable or missing layer: it warns and
/// leaves it out. A user cache that does not exist yet is no reason to warn. Sorted by key.
[[nodiscard]] std::vector<LoadedWinner> load_winners(const GpuKey&, const Toolchain&, const WarningSink&);
/// The winners of these files instead of layer_paths(); nullopt: of the packaged layer alone.
[[nodiscard]] std::vector<LoadedWinner> load_winners(const std::optional<LayerPaths>&, const GpuKey&,
                                                     const Toolchain&, const WarningSink&);
/// The winners with these bundles as the packaged layer.
[[nodiscard]] std::vector<LoadedWinner> load_winners(const std::optional<LayerPaths>&,
                                                     std::span<const PackagedBundle>, const GpuKey&,
                                                     const Toolchain&, const WarningSink&);

}  // namespace hone::cache
