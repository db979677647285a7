// hone export: the winners that hone list shows, as one text file (docs/cache-format.md).
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <tuple>

#include "cache/bundle.h"
#include "runtime/system/atomic_file.h"
#include "tuner/cli/command_list.h"
#include "tuner/cli/selection.h"
#include "tuner/cli/stored.h"
#include "tuner/cli/value_types.h"

namespace hone::cli {
namespace {

struct Options {
    std::string output;
    Selection selection;
    bool predicted = false;
};

/// Winners that are in the cache and not in the file.
struct Losses {
    std::int64_t damaged = 0;          ///< could not be read
    std::vector<std::string> refused;  ///< cannot be true, one sentence each

    [[nodiscard]] bool any() const { return damaged > 0 || !refused.empty(); }
    [[nodiscard]] ErrorInfo error() const {
        return {"winners_left_out",
                fmt::format("{} damaged winners and {} that cannot be true are not in the file", damaged,
                            refused.size()),
                "hone cache verify names them; hone tune --retune measures them again"};
    }
};

/// What import would refuse is named and not written.
void leave_out_bad(std::vector<cache::Trial>& winners, Losses& losses, const Console& console) {
    std::erase_if(winners, [&](const cache::Trial& winner) {
        const std::optional<std::string> why = cache::why_not_in_bundle(winner);
        if (why) losses.refused.push_back(*why);
        return why.has_value();
    });
    for (const std::string& why : losses.refused) console.warn("left out: " + why);
}

/// Winners of every layer that the options want; of a problem that several have, the user's, else the site's.
std::vector<cache::Trial> wanted_winners(const Options& options, Losses& losses, const Console& console) {
    const Selected selected(options.selection);
    std::vector<cache::Trial> all =
        open_user_cache(cache::OpenMode::read_only).winners(filter_of(""), &losses.damaged);
    std::ranges::move(lower_winners(console), std::back_inserter(all));
    std::vector<cache::Trial> winners;
    std::set<std::tuple<std::string, std::string, std::string, std::string>> known;
    for (cache::Trial& winner : all) {
        const bool is_left_out = !options.predicted && winner.provenance == cache::Provenance::predicted;
        if (is_left_out || !selected.contains(winner)) continue;
        const cache::TuningKey& key = winner.key;
        if (known.emplace(describe(key.gpu), key.family, key.static_fields, key.dynamic_fields).second)
            winners.push_back(std::move(winner));
    }
    return winners;
}

Outcome export_winners(const Options& options, const Console& console) {
    Losses losses;
    std::vector<cache::Trial> winners = wanted_winners(options, losses, console);
    leave_out_bad(winners, losses, console);
    if (winners.empty() && losses.any()) throw Failure(ExitCode::cache_unusable, losses.error());
    if (winners.empty()) {
        throw Failure(ExitCode::failure,
                      {"nothing_to_export", "no winner is like that", "hone list shows all"});
    }
    const std::size_t rows = winners.size();
    const std::string bundle = cache::write_bundle(std::move(winners));
    Outcome outcome{.data = {{"rows", rows}, {"left_out", losses.refused}, {"damaged", losses.damaged}}};
    if (losses.any()) {
        outcome.exit = ExitCode::cache_unusable;
        outcome.error = losses.error();
    }
    if (options.output.empty()) {
        outcome.data["bundle"] = bundle;
        outcome.text = bundle;
        return outcome;
    }
    runtime::write_file(options.output, bundle);
    outcome.data["file"] = options.output;
    console.note(fmt::format("{} winners written to {}", rows, options.output));
    return outcome;
}

}  // namespace

Runner declare_export(const Arguments& app) {
    const auto options = std::make_shared<Options>();
    app.add_option("-o,--output", options->output, "File to write (default: stdout)").type_name(file_type);
    options->selection.declare(app);
    app.add_flag("--with-predicted", options->predicted,
                 "Predicted winners too (default: measured and replayed ones)");
    return [options](const Console& console) { return export_winners(*options, console); };
}

}  // namespace hone::cli
