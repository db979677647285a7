#include "cli/stored.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <string_view>
#include <thread>
#include <utility>

#include "cache/bundle.h"
#include "cache/hint.h"
#include "cache/layers.h"
#include "cache/packaged.h"
#include "cache/process.h"
#include "runtime/system/parallel.h"
#include "runtime/system/text_file.h"

namespace hone::cli {
namespace {

bool matches(const cache::Trial& trial, const cache::Filter& filter) {
    return (!filter.gpu || *filter.gpu == trial.key.gpu) &&
           (filter.family.empty() || filter.family == trial.key.family) &&
           (filter.static_fields.empty() || filter.static_fields == trial.key.static_fields) &&
           (filter.dynamic_fields.empty() || filter.dynamic_fields == trial.key.dynamic_fields);
}

void append(std::vector<StoredTrial>& all, std::vector<cache::Trial> trials, const std::string& layer) {
    for (cache::Trial& trial : trials) all.push_back({std::move(trial), layer});
}

/// Every layer that has a database, or those below the user's.
enum class Databases : std::uint8_t { all, below_user };

/// `visit` with each of them and its layer's name; one that cannot be read is a warning.
template <class Visit>
void visit_databases(Databases which, const Console& console, Visit visit) {
    const auto read = [&](const std::filesystem::path& file, const std::string& layer) {
        try {
            visit(cache::Cache::open(file, cache::OpenMode::read_only), layer);
        } catch (const cache::CacheError& unreadable) {
            console.warn(fmt::format("{} cache left out: {}", layer, unreadable.what()));
        }
    };
    const cache::LayerPaths paths =
        cache::known_layer_paths([&](const cache::CacheError& nowhere) { console.warn(nowhere.what()); });
    std::error_code error;  // which reading it says
    const bool has_users = !paths.user.empty() && (std::filesystem::exists(paths.user, error) || error);
    if (which == Databases::all && has_users) read(paths.user, "user");
    if (paths.site) read(*paths.site, "site");  // somebody has named it: it should be there
}

/// What `query` finds in each of them.
template <class Query>
std::vector<StoredTrial> from_databases(Databases which, const Console& console, Query query) {
    std::vector<StoredTrial> all;
    visit_databases(which, console, [&](const cache::Cache& cache, const std::string& layer) {
        append(all, query(cache), layer);
    });
    return all;
}

enum class Rows : std::uint8_t { winners, all };

/// Rows of several static problems, on several threads: all that ship keep one busy for half a second.
std::vector<cache::Trial> read_packaged(const cache::PackagedBundle& bundle,
                                        const std::vector<const cache::PackagedRows*>& parts, Rows rows) {
    constexpr int most_threads = 8;
    const int threads =
        static_cast<int>(std::clamp<unsigned>(std::thread::hardware_concurrency(), 1, most_threads));
    std::vector<std::vector<cache::Trial>> read(parts.size());
    runtime::for_each_piece(std::ssize(parts), threads, [&](std::int64_t i) {
        const cache::PackagedRows& part = *parts[static_cast<std::size_t>(i)];
        const std::string lines = cache::lines_of(bundle, part);
        const std::string place = fmt::format("{} {}", part.family, part.static_fields);
        read[static_cast<std::size_t>(i)] = rows == Rows::winners ? cache::read_packaged_winners(lines, place)
                                                                  : cache::read_packaged_races(lines, place);
    });
    std::vector<cache::Trial> all;
    for (std::vector<cache::Trial>& part : read) std::ranges::move(part, std::back_inserter(all));
    return all;
}

/// What `is_wanted` says of families and static fields is all that is read.
template <class IsWanted>
void append_packaged(std::vector<StoredTrial>& all, IsWanted is_wanted, Rows rows, const Console& console) {
    const auto warn = [&](const std::string& text) { console.warn(text); };
    for (const cache::PackagedBundle& bundle : cache::packaged_layer(warn)) {
        std::vector<const cache::PackagedRows*> parts;
        for (const cache::PackagedRows& part : bundle.rows)
            if (is_wanted(part)) parts.push_back(&part);
        try {
            append(all, read_packaged(bundle, parts, rows), "packaged");
        } catch (const cache::BundleError& refused) {
            console.warn(fmt::format("packaged results {} left out: {}", bundle.name, refused.what()));
        }
    }
}

void append_packaged(std::vector<StoredTrial>& all, const cache::Filter& filter, Rows rows,
                     const Console& console) {
    const auto is_wanted = [&](const cache::PackagedRows& part) {
        return (filter.family.empty() || filter.family == part.family) &&
               (filter.static_fields.empty() || filter.static_fields == part.static_fields);
    };
    std::vector<StoredTrial> packaged;
    append_packaged(packaged, is_wanted, rows, console);
    std::erase_if(packaged, [&](const StoredTrial& stored) { return !matches(stored.trial, filter); });
    std::ranges::move(packaged, std::back_inserter(all));
}

std::string read_bundle_text(const std::string& file) {
    if (file != "-") {
        std::error_code unreadable;  // read_text_file says why
        const std::uintmax_t bytes = std::filesystem::file_size(file, unreadable);
        if (!unreadable && bytes > cache::max_bundle_bytes) {
            throw cache::BundleError(
                fmt::format("{}: {} bytes; allowed are up to {}", file, bytes, cache::max_bundle_bytes));
        }
        return runtime::read_text_file(file, cache::max_bundle_bytes);
    }
    std::string text(cache::max_bundle_bytes + 1, '\0');
    std::cin.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(std::cin.gcount()));
    return text;  // read_bundle refuses what is too long
}

std::vector<cache::Trial> intact_winners(const cache::Cache& cache, const cache::Filter& filter,
                                         const Console& console) {
    std::int64_t damaged = 0;
    std::vector<cache::Trial> winners = cache.winners(filter, &damaged);
    if (damaged > 0) {
        console.warn(
            fmt::format("{}: {} damaged winners left out; hone cache verify with HONE_CACHE set to "
                        "that file names them",
                        cache.path().string(), damaged));
    }
    return winners;
}

/// Winners, and behind them all that raced.
std::vector<cache::Trial> races_in(const cache::Cache& cache, const cache::Filter& filter,
                                   const Console& console) {
    std::vector<cache::Trial> trials = intact_winners(cache, filter, console);
    std::ranges::move(cache.raced_trials(filter), std::back_inserter(trials));
    return trials;
}

std::vector<StoredTrial> races_of(const cache::Filter& filter, const Console& console) {
    std::vector<StoredTrial> all = from_databases(
        Databases::all, console, [&](const cache::Cache& cache) { return races_in(cache, filter, console); });
    append_packaged(all, filter, Rows::all, console);
    return all;
}

std::vector<StoredRace> with_ties(const std::vector<StoredTrial>& trials) {
    std::map<std::pair<std::string, cache::TuningKey>, std::vector<cache::Trial>> raced;
    for (const auto& [trial, layer] : trials) {
        if (!trial.winner) raced[{layer, trial.key}].push_back(trial);
    }
    std::vector<StoredRace> races;
    for (const StoredTrial& stored : trials) {
        if (!stored.trial.winner) continue;
        races.push_back({stored, cache::ties_of(stored.trial, raced[{stored.layer, stored.trial.key}])});
    }
    return races;
}

bool is_database(const std::string& file) {
    constexpr std::string_view magic = "SQLite format 3";
    std::string begin(magic.size(), '\0');
    std::ifstream(file, std::ios::binary).read(begin.data(), static_cast<std::streamsize>(begin.size()));
    return begin == magic;
}

}  // namespace

std::vector<StoredRace> stored_races(const cache::Filter& filter, const Console& console) {
    return with_ties(races_of(filter, console));
}

std::vector<StoredRace> races_of_file(const std::string& file, const Console& console) {
    std::vector<StoredTrial> all;
    if (file != "-") runtime::require_regular_file(file);  // before a pipe is opened that nobody writes to
    append(all,
           is_database(file) ? races_in(open_named_cache(file), {}, console) : read_bundle_file(file).trials,
           file);
    return with_ties(all);
}

cache::Bundle read_bundle_file(const std::string& file) {
    return cache::read_whole_bundle(read_bundle_text(file), file, cache::now_ms());
}

std::vector<StoredTrial> stored_winners(const cache::Filter& filter, const Console& console) {
    std::vector<StoredTrial> all = from_databases(Databases::all, console, [&](const cache::Cache& cache) {
        return intact_winners(cache, filter, console);
    });
    append_packaged(all, filter, Rows::winners, console);
    return all;
}

std::vector<cache::Trial> lower_trials(const Console& console, const FamilyFilter& is_wanted) {
    std::vector<StoredTrial> all =
        from_databases(Databases::below_user, console,
                       [&](const cache::Cache& cache) { return races_in(cache, {}, console); });
    std::erase_if(all, [&](const StoredTrial& stored) { return !is_wanted(stored.trial.key.family); });
    append_packaged(
        all, [&](const cache::PackagedRows& part) { return is_wanted(part.family); }, Rows::all, console);
    std::vector<cache::Trial> lower;
    for (StoredTrial& stored : all) lower.push_back(std::move(stored.trial));
    return lower;
}

StoredResults stored_results(const Console& console) {
    StoredResults all;
    visit_databases(Databases::all, console, [&](const cache::Cache& cache, const std::string& layer) {
        std::vector<cache::Trial> winners = intact_winners(cache, {}, console);
        append(all.trials, cache.trials(), layer);
        append(all.winners, std::move(winners), layer);
    });
    append_packaged(all.winners, cache::Filter{}, Rows::winners, console);
    return all;
}

std::vector<StoredTrial> stored_trials(const cache::Filter& filter, const Console& console) {
    std::vector<StoredTrial> all = from_databases(
        Databases::all, console, [&](const cache::Cache& cache) { return cache.trials(filter); });
    append_packaged(all, filter, Rows::all, console);
    return all;
}

cache::Cache open_user_cache(cache::OpenMode mode) {
    return cache::Cache::open(cache::layer_paths().user, mode);
}

cache::Cache open_named_cache(const std::string& file) {
    try {
        return cache::Cache::open(file, cache::OpenMode::read_only);
    } catch (const cache::CacheError& error) {
        throw cache::CacheError(error.kind(), error.what(), cache::hint_for_other(error, "name"));
    }
}

cache::Filter filter_of(const std::string& family) {
    return {.gpu = std::nullopt, .family = family, .static_fields = {}, .dynamic_fields = {}};
}

cache::Filter filter_of(const Problem& problem) {
    return {.gpu = std::nullopt,
            .family = std::string(problem.family->name),
            .static_fields = static_text(problem),
            .dynamic_fields = dynamic_text(problem)};
}

std::string trust_here(const cache::Trial& trial, const std::vector<tuner::DeviceInfo>& devices) {
    if (devices.empty()) return "-";
    return std::string(name(cache::trust_of(trial, devices.front().gpu, devices.front().toolchain)));
}

bool is_of(const cache::GpuKey& gpu, const DeviceTraits& traits) {
    return gpu.compute_major == traits.compute_major && gpu.compute_minor == traits.compute_minor;
}

std::string describe(const cache::GpuKey& gpu) {
    std::string text =
        fmt::format("{} ({}.{}, {} SMs", gpu.name, gpu.compute_major, gpu.compute_minor, gpu.sm_count);
    if (gpu.memory_clock_mhz > 0) text += fmt::format(", memory {} MHz", gpu.memory_clock_mhz);
    if (!gpu.mig_profile.empty()) text += ", MIG " + gpu.mig_profile;
    return text + ")";
}

std::string predicted_for(const cache::GpuKey& gpu) {
    return "predicted for " + to_string(native_arch(gpu.compute_major, gpu.compute_minor));
}

std::string place_of(const cache::Trial& trial) {
    const bool is_predicted = trial.provenance == cache::Provenance::predicted;
    return is_predicted ? predicted_for(trial.key.gpu) : describe(trial.key.gpu);
}

std::optional<DeviceTraits> known_traits(const cache::GpuKey& gpu,
                                         const std::vector<tuner::DeviceInfo>& devices) {
    for (const tuner::DeviceInfo& device : devices) {
        if (device.gpu == gpu) return device.traits;
    }
    std::optional<DeviceTraits> datasheet =
        representative_device(native_arch(gpu.compute_major, gpu.compute_minor));
    if (datasheet && datasheet->name == gpu.name && datasheet->sm_count == gpu.sm_count) return datasheet;
    return std::nullopt;
}

}  // namespace hone::cli
