// hone export: the winners that hone list shows, each with its contenders, as one text file
// (docs/cache-format.md).
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "cache/bundle.h"
#include "cache/error.h"
#include "cli/command_list.h"
#include "cli/selection.h"
#include "cli/stored.h"
#include "cli/value_types.h"
#include "runtime/system/atomic_file.h"
#include "tuner/search/shared_winners.h"
#include "tuner/search/shortlist.h"

namespace hone::cli {
namespace {

struct Options {
    std::string output;
    Selection selection;
    bool predicted = false;
    bool few_images = false;
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
/// Contenders go with their winner, and go without a word where they alone are bad.
void leave_out_bad(std::vector<cache::Trial>& trials, Losses& losses, const Console& console) {
    bool is_row_bad = false;
    std::erase_if(trials, [&](const cache::Trial& trial) {
        const std::optional<std::string> why = cache::why_not_in_bundle(trial);
        if (trial.winner) is_row_bad = why.has_value();
        if (trial.winner && why) losses.refused.push_back(*why);
        return is_row_bad || why.has_value();
    });
    for (const std::string& why : losses.refused) console.warn("left out: " + why);
}

std::string key_text(const cache::TuningKey& key) {
    return fmt::format("{} {} {} {}", describe(key.gpu), key.family, key.static_fields, key.dynamic_fields);
}

/// Winners of every layer that the options want, each followed by its contenders; of a problem that several
/// layers have, the user's, else the site's.
std::vector<cache::Trial> wanted_trials(const Options& options, Losses& losses, const Console& console) {
    const cache::Cache user = open_user_cache(cache::OpenMode::read_only);
    std::vector<cache::Trial> own = user.winners({}, &losses.damaged);
    std::ranges::move(user.raced_trials(), std::back_inserter(own));
    const std::vector<cache::Trial> lower = lower_trials(console);
    Selected selected(options.selection);
    for (const auto* trials : std::initializer_list<const std::vector<cache::Trial>*>{&own, &lower}) {
        for (const cache::Trial& trial : *trials) {
            if (trial.winner) selected.consider(trial);
        }
    }
    std::map<std::string, std::vector<cache::Trial>> races;  // a race's winner first
    const auto add = [&](const std::vector<cache::Trial>& trials) {
        std::map<std::string, std::vector<cache::Trial>> layer;
        for (const cache::Trial& trial : trials) {
            const bool is_left_out = !options.predicted && trial.provenance == cache::Provenance::predicted;
            const std::string key = key_text(trial.key);
            if (is_left_out || races.contains(key) || (!trial.winner && !layer.contains(key))) continue;
            if (trial.winner && (layer.contains(key) || !selected.contains(trial))) continue;
            layer[key].push_back(trial);
        }
        races.merge(layer);
    };
    add(own);
    add(lower);
    std::vector<tuner::WonRace> won;
    for (auto& [key, trials] : races) won.push_back(std::move(trials));
    if (options.few_images) {
        const tuner::SharedWinners shared = tuner::share_images(won);
        console.note(
            fmt::format("{} of {} winners gave their place to kernels that tie: {} images, before {}",
                        shared.changed, won.size(), shared.images, shared.images_before));
    }
    std::vector<cache::Trial> wanted;
    for (const tuner::WonRace& race : won) {
        wanted.push_back(race.front());
        std::ranges::move(tuner::contenders(race.front(), race), std::back_inserter(wanted));
    }
    return wanted;
}

/// What the file is for, where a model or a capture was selected.
std::optional<cache::BundlePurpose> purpose_of(const Target& target) {
    if (!target.names_many()) return std::nullopt;
    const tuner::Workload workload = target.workload();
    const std::string format = target.format.empty() ? "" : '-' + target.format;
    cache::BundlePurpose purpose{.name = cache::purpose_name(workload.name + format), .shares = {}};
    for (const tuner::CapturedUse& use : workload.captured)
        purpose.shares.emplace(to_string(use.problem), use.share);
    return purpose;
}

std::string bundle_of(std::vector<cache::Trial> trials, const Target& target) {
    try {
        return cache::write_bundle(std::move(trials), purpose_of(target));
    } catch (const cache::BundleError& too_large) {
        throw Failure(ExitCode::failure,
                      {"cannot_export", too_large.what(),
                       "export it in parts: an OPERATOR, FIELD=VALUE, --gpu and --model choose"});
    }
}

Outcome export_winners(const Options& options, const Console& console) {
    Losses losses;
    std::vector<cache::Trial> trials = wanted_trials(options, losses, console);
    leave_out_bad(trials, losses, console);
    if (trials.empty() && losses.any()) throw Failure(ExitCode::cache_unusable, losses.error());
    if (trials.empty()) {
        throw Failure(ExitCode::failure,
                      {"nothing_to_export", "no winner is like that", "hone list shows all"});
    }
    const auto rows = std::ranges::count_if(trials, &cache::Trial::winner);
    const std::string bundle = bundle_of(std::move(trials), options.selection.target);
    Outcome outcome{.data = {{"rows", rows}, {"left_out", losses.refused}, {"damaged", losses.damaged}}};
    if (losses.any()) {
        outcome.exit = ExitCode::cache_unusable;
        outcome.error = losses.error();
    }
    if (options.output.empty() || options.output == "-") {
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
    app.add_option("-o,--output", options->output, "File to write, or - for stdout (default)")
        .type_name(file_type);
    options->selection.declare(app);
    app.add_flag("--with-predicted", options->predicted,
                 "Predicted winners too (default: measured and replayed ones)");
    app.add_flag(
        "--few-images", options->few_images,
        "Of kernels that tie with a winner in its final, the one that ties at most sizes of the same "
        "static problem (default: the winner)");
    return [options](const Console& console) { return export_winners(*options, console); };
}

}  // namespace hone::cli
