// Stored results as commands read them: every layer that can be read, with a warning for each that cannot.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/bundle.h"
#include "cache/cache.h"
#include "cache/ties.h"
#include "cli/console.h"
#include "tuner/measure/measurer.h"
#include "tuner/report/page/stored_trial.h"

namespace hone::cli {

using tuner::StoredTrial;

/// Winners of all layers, user first; nothing is resolved between layers.
[[nodiscard]] std::vector<StoredTrial> stored_winners(const cache::Filter& filter, const Console& console);
/// The same of everything, and beside them all trials of the user's and the site's cache, each layer read
/// once.
struct StoredResults {
    std::vector<StoredTrial> winners;
    std::vector<StoredTrial> trials;
};
[[nodiscard]] StoredResults stored_results(const Console& console);
/// A winner with the kernels that tie with it.
struct StoredRace {
    StoredTrial winner;
    cache::Ties ties;
};
/// The same winners, in the same order.
[[nodiscard]] std::vector<StoredRace> stored_races(const cache::Filter& filter, const Console& console);
/// Those of another cache or of an exported file ("-": of stdin). Throws CacheError and BundleError.
[[nodiscard]] std::vector<StoredRace> races_of_file(const std::string& file, const Console& console);
/// An exported file ("-": stdin), checked: winners, each followed by its contenders. Throws BundleError.
[[nodiscard]] cache::Bundle read_bundle_file(const std::string& file);

/// Whether a family, by its name, is wanted.
using FamilyFilter = std::function<bool(std::string_view)>;
[[nodiscard]] inline bool every_family(std::string_view) { return true; }

/// Winners of the layers below the user's, the site's, then the packaged ones, and those that raced them,
/// of the families that are wanted.
[[nodiscard]] std::vector<cache::Trial> lower_trials(const Console& console,
                                                     const FamilyFilter& is_wanted = every_family);
/// Trials of the user's and the site's cache, and the packaged winners with their contenders.
[[nodiscard]] std::vector<StoredTrial> stored_trials(const cache::Filter& filter, const Console& console);

/// The user's cache, created when it is not there. Throws CacheError.
[[nodiscard]] cache::Cache open_user_cache(cache::OpenMode mode = cache::OpenMode::read_write);
/// A cache that the command line names, to be read; what cannot be opened says to name another.
[[nodiscard]] cache::Cache open_named_cache(const std::string& file);

/// Everything of one operator, or of all for "".
[[nodiscard]] cache::Filter filter_of(const std::string& family);
/// One problem on any GPU.
[[nodiscard]] cache::Filter filter_of(const Problem& problem);

/// "exact", "foreign" ... on the first of these GPUs; "-" when there is none.
[[nodiscard]] std::string trust_here(const cache::Trial& trial,
                                     const std::vector<tuner::DeviceInfo>& devices);

/// Whether the GPU is one of the device's architecture.
[[nodiscard]] bool is_of(const cache::GpuKey& gpu, const DeviceTraits& traits);

/// "NVIDIA H100 80GB HBM3 (9.0, 132 SMs, memory 2619 MHz)"
[[nodiscard]] std::string describe(const cache::GpuKey& gpu);
/// Where a trial's time is from: that, and "predicted for sm_90a" where no GPU has seen it.
[[nodiscard]] std::string place_of(const cache::Trial& trial);
[[nodiscard]] std::string predicted_for(const cache::GpuKey& gpu);

/// For a trial's problem: the share of the bandwidth floor on the device it was measured on, as far as its
/// traits are known.
[[nodiscard]] std::optional<DeviceTraits> known_traits(const cache::GpuKey& gpu,
                                                       const std::vector<tuner::DeviceInfo>& devices);

}  // namespace hone::cli
