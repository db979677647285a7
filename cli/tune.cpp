// hone tune: the workload, who answers for it, and what is shown at the end.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "cache/layers.h"
#include "cli/command_list.h"
#if HONE_WITH_DECODER
#include "cli/decoder/tune_chain.h"
#endif
#include "cli/dispatched.h"
#include "cli/errors.h"
#include "cli/few_kernels.h"
#include "cli/interrupt.h"
#include "cli/shell.h"
#include "cli/stored.h"
#include "cli/tune_runs.h"
#include "kernel_templates/space.h"
#include "runtime/system/parallel.h"
#include "runtime/system/short_text.h"
#include "tuner/models/shards.h"
#include "tuner/report/report.h"
#include "tuner/report/report_text.h"
#include "tuner/report/summary.h"

namespace hone::cli {
namespace {

using tuner::StopReason;
using tuner::Workload;

void check_not_empty(const Workload& workload) {
    if (!workload.problems.empty()) return;
    throw Failure(ExitCode::nothing_valid,
                  {"nothing_to_tune", fmt::format("{}: no operator of it has a family yet", workload.name),
                   "hone spaces lists the families"});
}

/// What this run is about: all problems of the target, or a shard of them.
struct Share {
    Workload workload;
    std::string name;     ///< "llama-3-8b, shard 3 of 8"
    std::string counted;  ///< "23 of 182 problems"
    Json shard;           ///< null: all of them
};

Share share_of(const Workload& whole, const std::optional<Shard>& shard) {
    const std::size_t all = whole.problems.size();
    if (!shard)
        return {
            .workload = whole, .name = whole.name, .counted = fmt::format("{} problems", all), .shard = {}};
    Workload part = tuner::shards_of(whole, shard->count)[shard->number - 1];
    part.without_family = whole.without_family;
    part.warnings = whole.warnings;
    const std::size_t count = part.problems.size();
    return {.workload = std::move(part),
            .name = fmt::format("{}, shard {} of {}", whole.name, shard->number, shard->count),
            .counted = fmt::format("{} of {} problems", count, all),
            .shard = {{"number", shard->number}, {"count", shard->count}, {"of_problems", all}}};
}

Json captured_json(const Workload& workload) {
    Json uses = Json::array();
    for (const tuner::CapturedUse& use : workload.captured)
        uses.push_back({{"problem", to_string(use.problem)}, {"calls", use.calls}, {"share", use.share}});
    return uses;
}

/// What takes the time, the most first; empty where nothing was captured.
std::string captured_text(const Workload& workload, const tuner::Page& page) {
    if (workload.captured.empty()) return "";
    tuner::Table table({{"captured"}, {"calls", tuner::Align::right}, {"of the time", tuner::Align::right}});
    for (const tuner::CapturedUse& use : workload.captured)
        table.add(
            {to_string(use.problem), std::to_string(use.calls), fmt::format("{:.1f} %", 100 * use.share)});
    return table.render(page, "  ") + '\n';
}

/// What no step calls on these GPUs is not tuned for them.
void drop_not_called(Share& share, std::span<const DeviceTraits> devices) {
    if (const std::size_t dropped = tuner::drop_not_called(share.workload, devices); dropped > 0)
        share.counted += fmt::format(" less {} that no step calls here", dropped);
}

std::vector<DeviceTraits> traits_of(const std::vector<tuner::DeviceInfo>& devices) {
    std::vector<DeviceTraits> traits;
    for (const tuner::DeviceInfo& device : devices) traits.push_back(device.traits);
    return traits;
}

struct SpaceRow {
    std::size_t candidates = 0;
    std::string fallback;
};

/// By counting, not by ranking, which takes as long again; a capture may have thousands of problems.
std::vector<SpaceRow> rows_of(const std::vector<Problem>& problems, const DeviceTraits& traits) {
    std::vector<SpaceRow> rows(problems.size());
    runtime::for_each_piece(std::ssize(problems), 0, [&](std::int64_t i) {
        const Problem& problem = problems[static_cast<std::size_t>(i)];
        SpaceRow& row = rows[static_cast<std::size_t>(i)];
        for (const Variant* variant : problem.family->variants)
            row.candidates += enumerate(problem, *variant, traits).size();
        if (const std::optional<Candidate> safe = fallback(problem, traits)) row.fallback = to_string(*safe);
    });
    return rows;
}

/// Problems with the size of their spaces on the GPU here, or on the architecture asked for.
Outcome dry_run(Share& share, const TuneCommandOptions& options, const Console& console) {
    const Workload& workload = share.workload;
    const Gpus gpus = find_gpus();
    const bool here = (!gpus.devices.empty() || !options.gpu.empty()) && !options.offline;
    const DeviceTraits traits = here ? chosen_gpus(gpus, options.gpu).front().traits
                                     : *representative_device(arch_named(options.arch));
    const std::string device = here ? traits.name : options.arch;
    drop_not_called(share, std::span(&traits, 1));
    Outcome outcome{.data = {{"name", workload.name},
                             {"shard", share.shard},
                             {"device", device},
                             {"problems", Json::array()},
                             {"captured", captured_json(workload)},
                             {"operators", tuner::list_json(workload.tuned)},
                             {"without_family", tuner::list_json(workload.without_family)},
                             {"warnings", warnings_of(workload)}}};
    tuner::Table table({{"problem"}, {"candidates", tuner::Align::right}, {"default"}});
    const std::vector<SpaceRow> rows = rows_of(workload.problems, traits);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const std::string problem = to_string(workload.problems[i]);
        const auto& [candidates, fallback] = rows[i];
        outcome.data["problems"].push_back(
            {{"problem", problem}, {"candidates", candidates}, {"default", fallback}});
        table.add({problem, std::to_string(candidates), fallback});
    }
    outcome.text = fmt::format("{} on {}: {}; nothing is tuned (--dry-run)\n\n{}{}",
                               runtime::escape_controls(share.name), device, share.counted,
                               captured_text(workload, console.page), table.render(console.page, "  "));
    return outcome;
}

/// The first sentence of a message that lists every place tried.
std::string first_line(const std::string& text) {
    std::string line = text.substr(0, text.find('\n'));
    constexpr std::string_view list_follows = " Tried:";
    if (line.ends_with(list_follows)) line.resize(line.size() - list_follows.size());
    return line;
}

/// Compiling the best of a model's predictions takes minutes, and a GPU says more: who wants it done here
/// asks for --offline, a higher effort or more time.
constexpr std::chrono::seconds compiling_unasked{5};

/// No GPU: said first, then recordings where there are some, predictions for the rest.
std::vector<TuneRun> run_without_gpu(const Workload& workload, const Gpus& gpus, const TuneContext& context) {
    context.console.note(fmt::format(
        "no usable GPU: going on with recorded sweeps and, where there are none, predictions for {} ({})",
        context.options.arch, first_line(gpus.why_none)));
    Workload left;
    std::vector<TuneRun> runs = run_recorded(workload, context, left);
    if (left.problems.empty() || context.stop) return runs;
    const tuner::TuneOptions options = context.options.tune_options();
    const bool asked = options.budget || options.kernels || options.effort != tuner::Effort::quick;
    for (TuneRun& run : run_offline(left, context, asked ? std::nullopt : std::optional(compiling_unasked))) {
        if (run.result.stopped == StopReason::answered)
            context.console.note(fmt::format(
                "not all problems were reached within {} s of compiling; --offline compiles for all of them",
                compiling_unasked.count()));
        runs.push_back(std::move(run));
    }
    return runs;
}

/// Few kernels serve every size that a prepared operator may ask for: those between the run's, too, for which
/// winners are stored.
void add_sizes_between(Share& share, const DeviceTraits& traits, const Console& console) {
    std::vector<Problem>& problems = share.workload.problems;
    const std::size_t asked = problems.size();
    problems = Dispatched(traits, stored_winners({}, console)).with_buckets_between(std::move(problems));
    if (share.workload.captured.empty()) tuner::group_by_static_part(problems);
    if (problems.size() > asked)
        share.counted += fmt::format(" and {} sizes between", problems.size() - asked);
}

std::vector<TuneRun> run(Share& share, const TuneContext& context) {
    const TuneCommandOptions& options = context.options;
    const Workload& workload = share.workload;
    if (workload.problems.empty()) return {};  // more shards than problems
    const auto drop_for_arch = [&] {
        drop_not_called(share, std::vector{*representative_device(arch_named(options.arch))});
    };
    if (options.offline) {
        drop_for_arch();
        return run_offline(workload, context);
    }
    if (options.replay) {
        Workload left;
        std::vector<TuneRun> runs = run_recorded(workload, context, left);
        if (left.problems.empty()) return runs;
        throw Failure(ExitCode::nothing_valid,
                      {"not_recorded", "no recorded sweep of " + to_string(left.problems.front()),
                       "hone tune --record FILE makes one on a GPU"});
    }
    Gpus gpus = options.gpu == "all" ? find_all_gpus() : find_gpus();
    if (gpus.devices.empty() && options.gpu.empty() && options.record_file.empty()) {
        drop_for_arch();
        return run_without_gpu(workload, gpus, context);
    }
    const auto chosen = chosen_gpus(gpus, options.gpu);
    warn_without_nvml(context.console);
    drop_not_called(share, traits_of(chosen));
    if (options.kernels > 0) add_sizes_between(share, chosen.front().traits, context.console);
    return run_on_gpus(workload, chosen, context, std::move(gpus.first_worker));
}

/// Kinds of GPUs whose runs ended with an exception, where others did not.
void set_failed(const std::vector<TuneRun>& runs, Outcome& outcome) {
    std::string failures;
    for (const TuneRun& run : runs) {
        if (!run.failure) continue;
        if (failures.empty()) {
            Outcome first = outcome_of(run.failure);
            outcome.exit = first.exit;
            outcome.error = std::move(first.error);
        }
        failures +=
            fmt::format("GPU {} ({}) failed: {}; ", run.device.ordinal, run.device.gpu.name, run.result.lost);
    }
    if (!failures.empty()) outcome.error->message = failures + "what the others measured is saved";
}

void set_end(const std::vector<TuneRun>& runs, const TuneCommandOptions& options, const Console& console,
             Outcome& outcome) {
    const auto stopped = [&](StopReason reason) {
        return std::any_of(runs.begin(), runs.end(),
                           [&](const TuneRun& run) { return run.result.stopped == reason; });
    };
    const bool starts_anew = options.tune_options().retune;
    const std::string again =
        console.command() + (starts_anew ? " measures all of it again" : " goes on from here");
    if (stopped(StopReason::interrupted)) {
        outcome.exit = ExitCode::interrupted;
        outcome.error = {"interrupted", "stopped by Ctrl-C; everything measured so far is saved", again};
        return;
    }
    set_failed(runs, outcome);
    if (outcome.error) return;
    if (stopped(StopReason::budget)) {
        outcome.exit = ExitCode::budget_ended;
        outcome.error = {"budget_ended", "the budget ended; the table has the best so far", again};
        return;
    }
    for (const TuneRun& run : runs) {
        set_not_covered(run.result.covers, outcome);
        for (const tuner::ProblemResult& problem : run.result.problems) {
            if (problem.winner) continue;
            const std::string text = to_string(problem.problem);
            outcome.exit = ExitCode::nothing_valid;
            outcome.error = {"nothing_valid",
                             fmt::format("no valid kernel for {}: {}", text, problem.failure),
                             fmt::format("hone show {} lists what was tried", text)};
            return;
        }
    }
}

bool is_measured(const TuneRun& run) { return run.device.ordinal >= 0; }

/// What the run was for: explained as it was answered, exported as it was asked; without a GPU the same
/// command for a machine that has one.
std::vector<std::string> next_commands(const std::vector<TuneRun>& runs, const Workload& workload,
                                       const TuneCommandOptions& options, const Console& console) {
    if (workload.problems.empty()) return {};
    const std::string example = to_string(workload.problems.back());
    if (std::ranges::any_of(runs, is_measured)) {
        const std::string gpu = options.gpu == "all" ? "" : options.gpu;
        return {fmt::format("hone explain {}{}", example, option_words("--gpu", gpu)),
                options.shard.empty()
                    ? fmt::format("hone export{} -o winners.json", options.target.selection_words())
                    : fmt::format("hone merge {}   # where the shards come together",
                                  quoted_for_shell(cache::layer_paths().user.string()))};
    }
    constexpr std::string_view flags[] = {"--offline"};
    constexpr std::string_view values[] = {"--arch"};
    const bool is_predicted = std::ranges::any_of(runs, [](const TuneRun& run) { return run.is_predicted; });
    return {
        fmt::format("hone explain {}{}", example, is_predicted ? option_words("--arch", options.arch) : ""),
        command_line(without(console.arguments, flags, values)) + "   # on a machine with a GPU"};
}

/// Which device a run is about; a prediction has none.
std::string title_of(const TuneRun& run) {
    return run.is_predicted ? run.source : fmt::format("{}, {}", run.device.gpu.name, run.source);
}

/// The head of the output: a dozen lines.
std::string head_of(const Share& share, const std::vector<TuneRun>& runs, const TuneCommandOptions& options,
                    const Console& console) {
    std::string text = share.name + (share.shard.is_null() ? "" : ": " + share.counted) + '\n';
    std::vector<const tuner::TuneResult*> results;
    for (const TuneRun& run : runs) {
        if (run.failure) {
            text += fmt::format("  {}: failed\n", title_of(run));
            continue;
        }
        results.push_back(&run.result);
        text += fmt::format("  {}: {} problems, {} compiles, {} measurements, {}\n", title_of(run),
                            run.result.problems.size(), run.result.compiles, run.result.measurements,
                            tuner::format_duration(run.result.elapsed));
    }
    text = runtime::escape_controls(text, true);
    text += to_text(tuner::summarize(results, share.workload.problems.size()), console.page);
    text += fmt::format("cache: {}\n", runtime::escape_controls(cache::layer_paths().user.string()));
    std::string_view lead = "next: ";
    for (const std::string& command : next_commands(runs, share.workload, options, console)) {
        text += fmt::format("{}{}\n", lead, runtime::escape_controls(command));
        lead = "      ";
    }
    return text;
}

Outcome describe(const Share& share, const std::vector<TuneRun>& runs, const TuneCommandOptions& options,
                 const Console& console) {
    const Workload& workload = share.workload;
    Outcome outcome{.data = {{"name", workload.name},
                             {"shard", share.shard},
                             {"runs", Json::array()},
                             {"captured", captured_json(workload)},
                             {"without_family", tuner::list_json(workload.without_family)},
                             {"warnings", warnings_of(workload)},
                             {"cache", cache::layer_paths().user.string()}},
                    .text = head_of(share, runs, options, console)};
    for (const TuneRun& run : runs) {
        Json json{{"gpu", tuner::as_json(run.device.gpu)}, {"source", run.source}};
        json.update(tuner::as_json(run.result, run.device.traits));
        outcome.data["runs"].push_back(std::move(json));
        if (run.failure) continue;
        outcome.text += fmt::format("\n{}\n\n{}{}", runtime::escape_controls(title_of(run)),
                                    tables(run.result, run.device.traits, console.page),
                                    covers_text(run.result.covers, console.page));
    }
    set_end(runs, options, console, outcome);
    return outcome;
}

/// What the layers below the user's have of the families that are wanted, read once.
class LowerLayers {
  public:
    /// Where the user's has nothing they will surely be asked for: a thread reads them while the driver is
    /// opened, which takes about as long.
    LowerLayers(const Console& console, FamilyFilter is_wanted)
        : console_(console), is_wanted_(std::move(is_wanted)) {
        std::error_code unreadable;  // which opening it says better
        if (std::filesystem::exists(cache::layer_paths().user, unreadable) || unreadable) return;
        try {
            ahead_ = std::async(std::launch::async, [this] { static_cast<void>(trials()); });
        } catch (const std::system_error&) {  // no more threads
        }
    }

    /// What cannot be read is thrown to whoever asks.
    const std::vector<cache::Trial>& trials() {
        // No std::call_once: what is thrown in one goes through C, which ends a program with an unwinder of
        // its own.
        const std::scoped_lock lock(mutex_);
        if (!trials_) trials_ = lower_trials(console_, is_wanted_);
        return *trials_;
    }

  private:
    const Console& console_;
    FamilyFilter is_wanted_;
    std::mutex mutex_;
    std::optional<std::vector<cache::Trial>> trials_;
    std::future<void> ahead_;  ///< ends before the others do
};

std::function<std::vector<cache::Trial>()> read_once(const Console& console, FamilyFilter is_wanted) {
    return
        [layers = std::make_shared<LowerLayers>(console, std::move(is_wanted))] { return layers->trials(); };
}

/// Races of other families say nothing about its problems.
FamilyFilter families_of(const Workload& workload) {
    std::set<std::string_view> families;
    for (const Problem& problem : workload.problems) families.insert(problem.family->name);
    return [families = std::move(families)](std::string_view family) { return families.contains(family); };
}

#if HONE_WITH_DECODER
Outcome tune_step(const TuneCommandOptions& options, const Console& console) {
    const Target& target = options.target;
    TuneChainOptions chain{.model = target.whole_model(),
                           .quantize = target.codes(),
                           .kv_dtype = options.kv_cache.chosen(),
                           .kv_len = options.kv_len,
                           .device = chosen_gpus(find_gpus(), options.gpu).front(),
                           .tune = options.tune_options()};
    const std::vector<std::int64_t> tokens = target.options().tokens;
    if (!tokens.empty()) chain.sequences = tokens;
    chain.tune.lower_trials = read_once(console, every_family);
    warn_without_nvml(console);
    return tune_chain(chain, console);
}
#endif

Outcome tune(const TuneCommandOptions& options, const Console& console) {
    options.check();
#if HONE_WITH_DECODER
    if (options.chain) return tune_step(options, console);
#endif
    Workload whole = options.target.workload();
    drop_chosen_in_steps(whole);
    warn_of(whole, console);
    check_not_empty(whole);
    Share share = share_of(whole, options.shard_asked());
    if (options.dry_run) return dry_run(share, options, console);
    const TuneContext context{.options = options,
                              .console = console,
                              .stop = stop_on_interrupt(),
                              .lower_trials = read_once(console, families_of(whole))};
    const std::vector<TuneRun> runs = run(share, context);
    return describe(share, runs, options, console);
}

}  // namespace

Runner declare_tune(const Arguments& app) {
    const auto options = std::make_shared<TuneCommandOptions>();
    options->declare(app);
    return [options](const Console& console) { return tune(*options, console); };
}

}  // namespace hone::cli
