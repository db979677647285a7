// hone import: winners of an exported file, with their contenders, into the user's cache, all or nothing.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "cache/layers.h"
#include "cli/command_list.h"
#include "cli/devices.h"
#include "cli/stored.h"

namespace hone::cli {
namespace {

struct Options {
    std::string file;
    bool dry_run = false;
};

/// "12 exact, 3 foreign": what the rows are worth on this machine's first GPU.
std::map<std::string, std::int64_t> count_by_trust(const std::vector<cache::Trial>& trials) {
    const std::vector<tuner::DeviceInfo> devices = find_gpus().devices;
    std::map<std::string, std::int64_t> counts;
    if (devices.empty()) return counts;
    for (const cache::Trial& trial : trials) ++counts[trust_here(trial, devices)];
    return counts;
}

/// How many of these winners the cache has not got.
std::int64_t count_new(const std::vector<cache::Trial>& winners, const cache::Cache& cache) {
    std::set<std::string> known;
    for (const cache::Trial& trial : cache.past_winners()) known.insert(identity(trial));
    return std::ranges::count_if(
        winners, [&](const cache::Trial& winner) { return !known.contains(identity(winner)); });
}

Outcome import_winners(const Options& options, const Console&) {
    const auto [trials, purpose] = read_bundle_file(options.file);
    std::vector<cache::Trial> winners;
    std::ranges::copy_if(trials, std::back_inserter(winners), &cache::Trial::winner);
    Outcome outcome{.data = {{"file", options.file},
                             {"rows", winners.size()},
                             {"contenders", trials.size() - winners.size()},
                             {"for", purpose ? Json(purpose->name) : Json(nullptr)},
                             {"dry_run", options.dry_run}}};
    std::int64_t added = 0;
    if (!options.dry_run) {
        cache::Cache cache = open_user_cache();
        added = count_new(winners, cache);
        cache.store_imported(trials);
        outcome.data["cache"] = cache.path().string();
    }
    const std::map<std::string, std::int64_t> trust_here = count_by_trust(winners);
    outcome.data["new"] = added;
    outcome.data["trust_here"] = trust_here;
    outcome.text = options.dry_run
                       ? fmt::format("{} rows, all valid; nothing imported (--dry-run)\n", winners.size())
                       : fmt::format("{} rows, {} of them new\n", winners.size(), added);
    if (purpose) outcome.text += fmt::format("  made for {}\n", purpose->name);
    for (const auto& [trust, count] : trust_here) outcome.text += fmt::format("  {} {} here\n", count, trust);
    return outcome;
}

}  // namespace

Runner declare_import(const Arguments& app) {
    const auto options = std::make_shared<Options>();
    app.add_option("FILE", options->file, "An exported file, or - for stdin").required().type_name("");
    app.add_flag("--dry-run", options->dry_run, "Check it and say what it is worth here");
    return [options](const Console& console) { return import_winners(*options, console); };
}

}  // namespace hone::cli
