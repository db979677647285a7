// hone report: winners and trials as one HTML file that opens offline (docs/report.md).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cache/process.h"
#include "cli/command_list.h"
#include "cli/devices.h"
#include "cli/selection.h"
#include "cli/stored.h"
#include "cli/targets.h"
#include "cli/value_types.h"
#include "runtime/system/atomic_file.h"
#include "tuner/models/known_models.h"
#include "tuner/report/page/model_steps.h"
#include "tuner/report/page/page.h"
#include "tuner/report/page/peers.h"

namespace hone::cli {
namespace {

struct Options {
    Selection selection;  ///< without a model
    std::string output = "report.html";
    Target target;  ///< its model is the one whose steps are shown
    std::vector<std::string> peers;
};

/// Winners first, whose candidates the page knows before it has read the trials. Of what ships with the build
/// there are winners alone.
tuner::ResultColumns gathered(Selected selected, const std::vector<tuner::DeviceInfo>& devices,
                              const Console& console) {
    tuner::ResultColumns columns([&](const cache::GpuKey& gpu) { return known_traits(gpu, devices); });
    const auto [winners, trials] = stored_results(console);
    for (const std::vector<StoredTrial>* all : {&winners, &trials}) {
        for (const StoredTrial& one : *all) selected.consider(one.trial);
    }
    for (const StoredTrial& winner : winners) {
        if (selected.contains(winner.trial))
            columns.add_winner(winner, devices.empty() ? "" : trust_here(winner.trial, devices));
    }
    for (const StoredTrial& trial : trials) {
        if (selected.contains(trial.trial)) columns.add_trial(trial);
    }
    return columns;
}

void refuse_nothing(const tuner::ResultColumns& columns, const Options& options) {
    if (columns.winner_count() + columns.trial_count() > 0) return;
    const bool all = options.selection.is_everything();
    throw Failure(ExitCode::failure,
                  {"nothing_to_report", all ? "nothing is tuned yet" : "no winner and no trial is like that",
                   all ? "hone tune MODEL" : "hone list shows what there is"});
}

Json steps_of(const Target& target, tuner::ResultColumns& columns, const Console& console) {
    if (target.model.empty()) return nullptr;
    const tuner::Model model = tuner::read_model(target.model);
    for (const std::string& warning : model.warnings) console.warn(warning);
    return tuner::model_steps(model, target.options(), columns);
}

Json peers_of(const std::vector<std::string>& files) {
    Json list = Json::array();
    for (const std::string& file : files) list.push_back(tuner::read_peers(file));
    return list;
}

tuner::PageData page_data(tuner::ResultColumns& columns, Json peers, const Options& options,
                          const Console& console) {
    Json model = steps_of(options.target, columns, console);
    Json results{{"schema", "hone.report/1"},
                 {"version", HONE_VERSION},
                 {"made_at_ms", cache::now_ms()},
                 {"filter", fmt::format("{}", fmt::join(options.selection.words, " "))},
                 {"gpu_filter", options.selection.gpu},
                 {"trial_count", columns.trial_count()}};
    results.update(columns.results());
    results["model"] = std::move(model);
    results["peers"] = std::move(peers);
    return {.results = std::move(results), .trials = columns.trials()};
}

Outcome report(const Options& options, const Console& console) {
    const Selected selected(options.selection);
    Json peers = peers_of(options.peers);
    const std::vector<tuner::DeviceInfo> devices = find_gpus().devices;
    tuner::ResultColumns columns = gathered(selected, devices, console);
    refuse_nothing(columns, options);
    const std::string page = tuner::page_of(page_data(columns, std::move(peers), options, console));
    runtime::write_file(options.output, page);
    console.note(fmt::format("{} winners and {} trials written to {} ({})", columns.winner_count(),
                             columns.trial_count(), options.output,
                             tuner::format_bytes(static_cast<std::int64_t>(page.size()))));
    return {.data = {{"file", options.output},
                     {"bytes", page.size()},
                     {"winners", columns.winner_count()},
                     {"trials", columns.trial_count()},
                     {"gpus", columns.gpu_count()}}};
}

}  // namespace

Runner declare_report(const Arguments& app) {
    const auto options = std::make_shared<Options>();
    options->selection.declare_words(app);
    options->selection.declare_gpu(app);
    app.add_option("-o,--output", options->output, "File to write (default: report.html)")
        .type_name(file_type);
    app.add_option("--peers", options->peers,
                   "Results of bench/compare_torch.py: other libraries beside Hone; may stand several times")
        .type_name(file_type)
        .one_value_each();
    const Argument model = options->target.declare_model_option(
        app,
        "What the time of this model's steps is spent on: a known model, or a path to a Hugging Face "
        "config.json");
    app.add_option("--tokens", options->target.tokens,
                   "Tokens of these steps (default: 1, 4, 16, 64, 256, 1024, 4096, 8192)")
        .needs(model);
    return [options](const Console& console) { return report(*options, console); };
}

}  // namespace hone::cli
