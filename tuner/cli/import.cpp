// hone import: winners of an exported file into the user's cache, all or nothing.
#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <iterator>
#include <map>

#include "cache/bundle.h"
#include "cache/layers.h"
#include "cache/process.h"
#include "runtime/system/text_file.h"
#include "tuner/cli/command_list.h"
#include "tuner/cli/devices.h"
#include "tuner/cli/stored.h"

namespace hone::cli {
namespace {

constexpr std::size_t max_bundle_bytes = std::size_t{16} << 20;

struct Options {
    std::string file;
    bool dry_run = false;
};

std::string read_bundle_text(const std::string& file) {
    if (file != "-") {
        std::error_code unreadable;  // read_text_file says why
        const std::uintmax_t bytes = std::filesystem::file_size(file, unreadable);
        if (!unreadable && bytes > max_bundle_bytes) {
            throw cache::BundleError(
                fmt::format("{}: {} bytes; allowed are up to {}", file, bytes, max_bundle_bytes));
        }
        return runtime::read_text_file(file, max_bundle_bytes);
    }
    std::string text(max_bundle_bytes + 1, '\0');
    std::cin.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(std::cin.gcount()));
    return text;  // read_bundle refuses what is too long
}

/// "12 exact, 3 foreign": what the rows are worth on this machine's first GPU.
std::map<std::string, std::int64_t> count_by_trust(const std::vector<cache::Trial>& trials) {
    const std::vector<tuner::DeviceInfo> devices = find_gpus().devices;
    std::map<std::string, std::int64_t> counts;
    if (devices.empty()) return counts;
    for (const cache::Trial& trial : trials) ++counts[trust_here(trial, devices)];
    return counts;
}

Outcome import_winners(const Options& options, const Console&) {
    const std::vector<cache::Trial> trials =
        cache::read_bundle(read_bundle_text(options.file), options.file, cache::now_ms());
    Outcome outcome{.data = {{"file", options.file}, {"rows", trials.size()}, {"dry_run", options.dry_run}}};
    std::int64_t added = 0;
    if (!options.dry_run) {
        cache::Cache cache = open_user_cache();
        const std::int64_t before = cache.stats().trials;
        cache.store_imported(trials);
        added = cache.stats().trials - before;
        outcome.data["cache"] = cache.path().string();
    }
    outcome.data["new"] = added;
    outcome.data["trust_here"] = count_by_trust(trials);
    outcome.text = options.dry_run
                       ? fmt::format("{} rows, all valid; nothing imported (--dry-run)\n", trials.size())
                       : fmt::format("{} rows, {} of them new\n", trials.size(), added);
    for (const auto& [trust, count] : count_by_trust(trials))
        outcome.text += fmt::format("  {} {} here\n", count, trust);
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
