// hone cache path|stats|verify|gc|clear: looking after the user's cache.
#include <fmt/format.h>

#include <set>

#include "cache/layers.h"
#include "cli/command_list.h"
#include "cli/stored.h"
#include "cli/targets.h"
#include "cli/value_types.h"
#include "runtime/system/short_text.h"
#include "tuner/report/report_text.h"

namespace hone::cli {
namespace {

struct Options {
    std::string action;
    std::string op;
    bool images = false;
    bool yes = false;
};

Outcome path() {
    const cache::LayerPaths paths = cache::layer_paths();
    Outcome outcome{.data = {{"user", paths.user.string()}, {"site", nullptr}},
                    .text = paths.user.string() + "\n"};
    if (paths.site) outcome.data["site"] = paths.site->string();
    return outcome;
}

Outcome stats() {
    const cache::Stats stats = open_user_cache(cache::OpenMode::read_only).stats();
    tuner::Table table({{"cache"}, {stats.path.string()}});
    table.add({"size", tuner::format_bytes(stats.file_bytes)});
    table.add({"trials", std::to_string(stats.trials)});
    table.add({"winners", std::to_string(stats.winners)});
    table.add({"images", fmt::format("{}, {}", stats.images, tuner::format_bytes(stats.image_bytes))});
    table.add({"schema", std::to_string(stats.schema_version)});
    table.add({"journal", stats.journal_mode});
    table.add({"network file system", stats.network_file_system ? "yes" : "no"});
    return {.data = {{"path", stats.path.string()},
                     {"file_bytes", stats.file_bytes},
                     {"trials", stats.trials},
                     {"winners", stats.winners},
                     {"images", stats.images},
                     {"image_bytes", stats.image_bytes},
                     {"schema_version", stats.schema_version},
                     {"journal_mode", stats.journal_mode},
                     {"network_file_system", stats.network_file_system}},
            .text = table.render({})};
}

Outcome verify() {
    const cache::VerifyReport report = open_user_cache(cache::OpenMode::read_only).verify();
    Outcome outcome{.data = {{"trials_checked", report.trials_checked},
                             {"images_checked", report.images_checked},
                             {"problems", report.problems}},
                    .text = fmt::format("{} trials and {} images checked\n", report.trials_checked,
                                        report.images_checked)};
    for (const std::string& problem : report.problems)
        outcome.text += "  " + runtime::escape_controls(problem) + "\n";
    if (report.ok) return outcome;
    outcome.exit = ExitCode::cache_unusable;
    outcome.error = {"cache_damaged", fmt::format("{} problems found", report.problems.size()),
                     "hone export saves the winners; hone cache clear --yes starts anew"};
    return outcome;
}

Outcome gc() {
    const cache::GcReport report = open_user_cache().gc();
    return {.data = {{"images_removed", report.images_removed},
                     {"bytes_freed", report.bytes_freed},
                     {"in_flight_removed", report.in_flight_removed}},
            .text = fmt::format("{} images removed, {} freed, {} rows of dead processes removed\n",
                                report.images_removed, tuner::format_bytes(report.bytes_freed),
                                report.in_flight_removed)};
}

/// What is stored of a family's problems, each once.
std::set<std::string> stored_problems(const cache::Cache& cache, const Family& family) {
    std::set<std::string> problems;
    for (const cache::Trial& trial : cache.trials(filter_of(std::string(family.name))))
        problems.insert(trial.key.static_fields);
    return problems;
}

/// Problem by problem: an operator that shares its family with another takes nothing of that.
std::int64_t clear_shared(cache::Cache& cache, const Family& family, OperatorProblems wanted, bool images) {
    const std::set<std::string> problems = stored_problems(cache, family);
    for (const std::string& fields : problems) wanted.consider(family.name, fields);
    std::int64_t removed = 0;
    cache::Filter filter = filter_of(std::string(family.name));
    for (const std::string& fields : problems) {
        filter.static_fields = fields;
        if (wanted.contains(family.name, fields)) removed += cache.clear(filter, images);
    }
    return removed;
}

std::int64_t clear_operator(cache::Cache& cache, const Options& options) {
    const OperatorName* named = find_operator(options.op);
    const bool is_shared = named != nullptr && !named->problems.empty();
    std::int64_t removed = 0;
    for (const Family* family : families_by_name(options.op)) {
        removed += is_shared ? clear_shared(cache, *family, problems_by_name(options.op), options.images)
                             : cache.clear(filter_of(std::string(family->name)), options.images);
    }
    return removed;
}

Outcome clear(const Options& options) {
    if (!options.yes) {
        throw Failure::usage("not_confirmed", "this removes stored results: add --yes",
                             "hone export saves them first");
    }
    cache::Cache cache = open_user_cache();
    const std::int64_t removed =
        options.op.empty() ? cache.clear(filter_of(""), options.images) : clear_operator(cache, options);
    return {.data = {{"removed", removed}, {"images", options.images}},
            .text = fmt::format("{} rows removed\n", removed)};
}

Outcome run_action(const Options& options) {
    Outcome outcome = options.action == "path"     ? path()
                      : options.action == "stats"  ? stats()
                      : options.action == "verify" ? verify()
                      : options.action == "gc"     ? gc()
                                                   : clear(options);
    Json data{{"action", options.action}};
    data.update(outcome.data);
    outcome.data = std::move(data);
    return outcome;
}

}  // namespace

Runner declare_cache(const Arguments& app) {
    const auto options = std::make_shared<Options>();
    const auto action = [&](const char* name, const char* summary) {
        return app.add_command(name, summary, [options, name] { options->action = name; });
    };
    action("path", "Where it is");
    action("stats", "What is in it");
    action("verify", "Check file, rows and images");
    action("gc", "Remove what nobody needs");
    const Arguments clear = action("clear", "Remove stored results");
    clear.add_option("--op", options->op, "Only of this operator, or family").type_name(operator_type);
    clear.add_flag("--images", options->images, "Compiled images too");
    clear.add_flag("--yes", options->yes, "Really");
    return [options](const Console&) { return run_action(*options); };
}

}  // namespace hone::cli
