// hone merge: the trials of another cache database into the user's.
#include <fmt/format.h>

#include "tuner/cli/command_list.h"
#include "tuner/cli/stored.h"

namespace hone::cli {
namespace {

Outcome merge_caches(const std::string& file) {
    const cache::Cache from = cache::Cache::open(file, cache::OpenMode::read_only);
    cache::Cache into = open_user_cache();
    const std::int64_t added = cache::merge(into, from);
    return {.data = {{"from", file}, {"into", into.path().string()}, {"new", added}},
            .text = fmt::format("{} new trials in {}\n", added, into.path().string())};
}

}  // namespace

Runner declare_merge(CLI::App& app) {
    const auto file = std::make_shared<std::string>();
    app.add_option("FILE", *file, "Another cache.db; it is only read")->required();
    return [file](const Console&) { return merge_caches(*file); };
}

}  // namespace hone::cli
