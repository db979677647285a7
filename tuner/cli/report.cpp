// hone report: winners and trials as one HTML file that opens offline (docs/report.md).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>

#include "runtime/system/atomic_file.h"
#include "tuner/cli/command_list.h"
#include "tuner/cli/devices.h"
#include "tuner/cli/stored.h"
#include "tuner/cli/targets.h"
#include "tuner/cli/trial_filter.h"
#include "tuner/report/page/model_steps.h"
#include "tuner/report/page/page.h"
#include "tuner/report/page/peers.h"

namespace hone::cli {
namespace {

struct Options {
    TrialFilterOptions filter;
    std::string output = "report.html";
    Target target;  ///< its model is the one whose steps are shown
    std::vector<std::string> peers;
};

std::int64_t now_ms() {
    return std::chrono::duration_cast<std::chrono::milliseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
}

/// Winners first, whose candidates the page knows before it has read the trials.
tuner::ResultColumns gathered(const TrialFilter& filter, const std::vector<tuner::DeviceInfo>& devices,
                              const Console& console) {
    tuner::ResultColumns columns([&](const cache::GpuKey& gpu) { return known_traits(gpu, devices); });
    for (const StoredTrial& winner : stored_winners(filter_of(filter.family()), console)) {
        if (filter.wants(winner.trial.key))
            columns.add_winner(winner, devices.empty() ? "" : trust_here(winner.trial, devices));
    }
    for (const StoredTrial& trial : stored_trials(filter_of(filter.family()), console)) {
        if (filter.wants(trial.trial.key)) columns.add_trial(trial);
    }
    return columns;
}

void refuse_nothing(const tuner::ResultColumns& columns, const Options& options) {
    if (columns.winner_count() + columns.trial_count() > 0) return;
    const bool all = options.filter.is_empty();
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
                 {"made_at_ms", now_ms()},
                 {"filter", fmt::format("{}", fmt::join(options.filter.words, " "))},
                 {"gpu_filter", options.filter.gpu},
                 {"trial_count", columns.trial_count()}};
    results.update(columns.results());
    results["model"] = std::move(model);
    results["peers"] = std::move(peers);
    return {.results = std::move(results), .trials = columns.trials()};
}

Outcome report(const Options& options, const Console& console) {
    const TrialFilter filter(options.filter);
    Json peers = peers_of(options.peers);
    const std::vector<tuner::DeviceInfo> devices = find_gpus().devices;
    tuner::ResultColumns columns = gathered(filter, devices, console);
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

Runner declare_report(CLI::App& app) {
    const auto options = std::make_shared<Options>();
    options->filter.declare(app);
    app.add_option("-o,--output", options->output, "File to write (default: report.html)");
    app.add_option("--peers", options->peers,
                   "Results of bench/compare_torch.py: other libraries beside Hone; may stand several times")
        ->allow_extra_args(false);
    CLI::Option* model =
        app.add_option("--model", options->target.model,
                       "What the time of this model's steps is spent on: a known model, or a "
                       "path to a Hugging Face config.json");
    app.add_option("--tokens", options->target.tokens,
                   "Tokens of these steps (default: 1, 4, 16, 64, 256, 1024, 4096, 8192)");
    app.add_option("--dtype", options->target.dtype, "fp32, fp16 or bf16 instead of the model's");
    app.add_option("--tp", options->target.tensor_parallel,
                   "Tensor-parallel GPUs that share heads and feed-forward");
    options->target.declare_format(app);
    for (const char* of_model :
         {"--tokens", "--dtype", "--tp", "--format", "--group", "--zeros", "--lm-head"})
        app.get_option(of_model)->needs(model);
    return [options](const Console& console) { return report(*options, console); };
}

}  // namespace hone::cli
