// The cache layers of this machine and the immutable winners that dispatch works from: packaged (read-only,
// part of the build) <- site <- user; later layers win, unless trust says otherwise.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cache/cache.h"
#include "cache/packaged.h"

namespace hone::cache {

struct LayerPaths {
    std::optional<std::filesystem::path> site;  ///< HONE_SITE_CACHE
    std::filesystem::path
        user;  ///< HONE_CACHE, else $XDG_CACHE_HOME/hone/cache.db, else ~/.cache/hone/cache.db; empty: none
};
/// Throws CacheError (unusable) when no place is known for the user's: HONE_CACHE is unset, and
/// XDG_CACHE_HOME and HOME are unset or relative.
[[nodiscard]] LayerPaths layer_paths();
/// The same where the site's will do: `warn` is told why no place is known for the user's.
[[nodiscard]] LayerPaths known_layer_paths(const std::function<void(const CacheError&)>& warn);

/// Called at most once a layer, with one sentence, when a layer cannot be read; dispatch goes on without it.
using WarningSink = std::function<void(const std::string&)>;

/// The bundles that ship with this build; none with HONE_PACKAGED=off. Another word than that and "on" is a
/// warning.
[[nodiscard]] std::span<const PackagedBundle> packaged_layer(const WarningSink& warn);

struct LoadedWinner {
    Trial trial;
    Trust trust = Trust::unusable;
    std::string layer;  ///< "user", "site", "packaged"
};

/// Trust of a stored winner on this GPU with this toolchain and this build's templates.
[[nodiscard]] Trust trust_of(const Trial&, const GpuKey&, const Toolchain&);

/// What is stored of one static problem.
struct StaticWinners {
    std::vector<LoadedWinner> winners;  ///< sorted by key
    std::string trouble;                ///< why packaged ones are left out; empty: they are not
};

/// The winners of every layer for a GPU: those of the databases as they were at construction, those that ship
/// with the build where a problem is asked for. Immutable; thread-safe.
class Winners {
  public:
    /// Never throws for a damaged, newer, unreadable or missing layer: it warns and leaves it out. A user
    /// cache that does not exist yet is no reason to warn. Without files: the packaged layer alone.
    Winners(const std::optional<LayerPaths>& files, std::span<const PackagedBundle> packaged, GpuKey gpu,
            Toolchain toolchain, const WarningSink& warn);
    /// With the packaged layer of this process.
    Winners(const std::optional<LayerPaths>& files, GpuKey gpu, Toolchain toolchain, const WarningSink& warn);
    /// And with layer_paths().
    Winners(GpuKey gpu, Toolchain toolchain, const WarningSink& warn);

    /// What is not `unusable` here. Per (dynamic, GPU kind) the best: trust first (exact, compatible,
    /// foreign, stale), then measured before replayed before predicted, then the later layer, then the newer.
    [[nodiscard]] StaticWinners of(std::string_view family, std::string_view static_fields) const;

  private:
    std::span<const PackagedBundle> packaged_;
    GpuKey gpu_;
    Toolchain toolchain_;
    std::vector<Trial> site_;  ///< sorted by family and static fields, better winners of a key first
    std::vector<Trial> user_;  ///< likewise
};

}  // namespace hone::cache
