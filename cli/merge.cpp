// hone merge: the trials of another cache database into the user's.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "cache/environment.h"
#include "cli/command_list.h"
#include "cli/stored.h"

namespace hone::cli {
namespace {

constexpr std::size_t most_named = 20;

/// Names the rows that were left out, and makes the command fail: what could be taken is stored all the same.
void tell_refused(const cache::MergeReport& report, const std::string& file, const Console& console,
                  Outcome& outcome) {
    if (report.refused.empty() && report.damaged == 0) return;
    const std::size_t named = std::min(report.refused.size(), most_named);
    for (std::size_t i = 0; i < named; ++i) console.warn("left out: " + report.refused[i]);
    outcome.exit = ExitCode::import_refused;
    outcome.error = {
        "rows_refused",
        fmt::format("{}: {} rows that cannot be true and {} damaged ones were left out", file,
                    report.refused.size(), report.damaged),
        "the other rows were merged; hone cache verify with HONE_CACHE set to that file names all"};
}

Outcome merge_caches(const std::string& file, const Console& console) {
    std::error_code missing;  // which opening it says
    if (std::filesystem::equivalent(file, cache::layer_paths().user, missing)) {
        throw Failure::usage(
            "same_cache",
            fmt::format("{}: is the cache that trials would be added to; allowed: another", file),
            "HONE_CACHE names the one that they are added to");
    }
    const cache::Cache from = open_named_cache(file);
    cache::Cache into = open_user_cache();
    const cache::MergeReport report = cache::merge(into, from);
    Outcome outcome{.data = {{"from", file},
                             {"into", into.path().string()},
                             {"new", report.added},
                             {"refused", report.refused},
                             {"damaged", report.damaged}},
                    .text = fmt::format("{} new trials in {}\n", report.added, into.path().string())};
    tell_refused(report, file, console, outcome);
    return outcome;
}

}  // namespace

Runner declare_merge(const Arguments& app) {
    const auto file = std::make_shared<std::string>();
    app.add_option("FILE", *file, "Another cache.db; it is only read").required().type_name("");
    return [file](const Console& console) { return merge_caches(*file, console); };
}

}  // namespace hone::cli
