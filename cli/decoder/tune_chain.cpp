#include "cli/decoder/tune_chain.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <utility>

#include "cli/decoder/loaded_model.h"
#include "cli/decoder/step_chain.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/stored.h"
#include "tuner/measure/gpu_session.h"
#include "tuner/search/chain_tuner.h"

namespace hone::cli {
namespace {

using decoder::StepKernel;
using decoder::StepSizes;
using tuner::ChainStepResult;

/// What stored winners say: of a file its folder, as texts in a cache have it.
std::string name_of(const models::Model& model) {
    std::filesystem::path file = model.name;
    if (file.has_parent_path()) file = file.parent_path();
    std::string name = file.filename().string().substr(0, 100);
    std::ranges::replace_if(
        name, [](char c) { return c <= ' ' || c > '~'; }, '_');
    return name;
}

std::string name_of(const TuneChainOptions& options, const StepSizes& sizes) {
    std::string name = name_of(options.model);
    if (options.quantize)
        name +=
            fmt::format(" format={}", quant_format_names[static_cast<std::size_t>(options.quantize->format)]);
    return fmt::format("{} tokens={} kv={}", name, sizes.sequences, sizes.kv_len);
}

/// Nothing can be launched here any more, and a driver that waits for a kernel without an end would not let
/// memory go: another process goes on, which knows what has been stored, and leaves the candidate out.
[[noreturn]] void begin_again(const StepFault& fault, const TuneChainOptions& options, cache::Cache& cache,
                              const Console& console) {
    const std::string candidate = to_string(fault.candidate);
    console.warn(fmt::format("{}: {} did not survive {} in a step; going on without it",
                             options.device.gpu.name, candidate, to_string(fault.kernel.problem)));
    const auto status = fault.hangs ? cache::TrialStatus::timed_out : cache::TrialStatus::crashed;
    if (fault.candidate != fault.kernel.candidate) {
        tuner::store_fault(fault.kernel.problem, fault.candidate, status, "in a step: " + fault.why,
                           options.device, cache);
        std::vector<std::string> arguments = console.arguments;
        arguments.insert(arguments.begin(), "hone");
        std::vector<char*> words;
        for (std::string& word : arguments) words.push_back(word.data());
        words.push_back(nullptr);
        execv("/proc/self/exe", words.data());
    }
    console.warn(fmt::format("the step as it is does not run: {}", fault.why));
    std::_Exit(static_cast<int>(ExitCode::failure));
}

Json json_of(const StepChain& step, const ChainStepResult& result, double floor_us) {
    Json kernels = Json::array();
    for (std::size_t i = 0; i < result.kernels.size(); ++i) {
        Json trials = Json::array();
        for (const tuner::ChainTrial& trial : result.trials) {
            if (trial.place != i) continue;
            trials.push_back({{"candidate", to_string(trial.candidate)},
                              {"ratio", trial.ratio},
                              {"final", trial.was_in_final},
                              {"taken", trial.taken}});
        }
        kernels.push_back({{"part", decoder::name(step.kernels()[i].part)},
                           {"problem", to_string(step.kernels()[i].problem)},
                           {"alone", to_string(result.alone[i])},
                           {"candidate", to_string(result.kernels[i])},
                           {"trials", std::move(trials)}});
    }
    Json json{{"sequences", step.sizes().sequences},
              {"norms", name(step.norms())},
              {"reused", result.reused},
              {"complete", result.is_complete},
              {"kept", result.is_kept},
              {"before_us", result.before_us},
              {"after_us", result.after_us},
              {"floor_us", floor_us},
              {"elapsed_ms", result.elapsed.count()},
              {"kernels", std::move(kernels)}};
    if (result.ratio > 0) json["ratio"] = result.ratio;
    return json;
}

/// What became of a step that shares norms in place of one that does not.
std::string text_of_choice(const ChainStepResult& sharing) {
    if (sharing.reused) return fmt::format("  {}\n", sharing.is_kept ? "kept" : "not kept");
    if (sharing.ratio == 0) return "";
    const double gain = 100 * (1 - sharing.ratio);
    return fmt::format("  {}: {:.2f} % {} than without, over equal and mixed lengths\n",
                       sharing.is_kept ? "kept" : "not kept", std::abs(gain),
                       gain < 0 ? "longer" : "shorter");
}

std::string text_of(const StepChain& step, const ChainStepResult& result, double floor_us,
                    const tuner::Page& page) {
    const std::int64_t count = step.sizes().sequences;
    const bool shares = step.norms() == Norms::shared;
    std::string text = fmt::format("{} sequence{}{}: ", count, count == 1 ? "" : "s",
                                   shares ? ", products share norms" : "");
    if (result.reused) {
        text += "all kernels were chosen in a step before\n";
    } else if (!result.is_complete) {
        return text + "stopped before every kernel was tried\n";
    } else {
        text += fmt::format(
            "{} us with the winners of each alone, {} us now ({:+.1f} %), byte floor {} us ({})\n",
            tuner::format_us(result.before_us), tuner::format_us(result.after_us),
            100 * (result.after_us / result.before_us - 1), tuner::format_us(floor_us),
            tuner::format_share(floor_us / result.after_us));
    }
    if (shares) text += text_of_choice(result);
    tuner::Table table({{"part"}, {"kernel"}, {"instead of"}});
    for (std::size_t i = 0; i < result.kernels.size(); ++i) {
        const bool same = result.kernels[i] == result.alone[i];
        table.add({std::string(decoder::name(step.kernels()[i].part)), to_string(result.kernels[i]),
                   same ? "" : to_string(result.alone[i])});
    }
    return text + table.render(page, "  ");
}

void set_end(const tuner::ChainTuneResult& result, const std::atomic<bool>& stop, const Console& console,
             Outcome& outcome) {
    const bool complete = std::ranges::all_of(result.steps, &ChainStepResult::is_complete);
    if (stop) {
        outcome.exit = ExitCode::interrupted;
        outcome.error = {"interrupted",
                         "stopped by Ctrl-C; every step that was raced to its end, both ways, is saved",
                         console.command() + " goes on from here"};
    } else if (!complete) {
        outcome.exit = ExitCode::budget_ended;
        outcome.error = {"budget_ended", "the time ended before every kernel of every step was tried",
                         console.command() + " goes on from here"};
    }
}

/// The model with fewer layers where they are alike: they are loaded and replayed sooner, and their weights
/// are still many times what level 2 holds.
models::Model shortened(models::Model model) {
    constexpr std::int64_t enough_layers = 8;
    if (model.layers.empty()) model.num_hidden_layers = std::min(model.num_hidden_layers, enough_layers);
    return model;
}

/// Every step that the run was to tune, as far as it came.
Outcome describe(const std::vector<std::unique_ptr<StepChain>>& chains, const tuner::ChainTuneResult& result,
                 decoder::RunningModel& model, const TuneChainOptions& options, const Console& console) {
    const DeviceTraits& traits = options.device.traits;
    const std::int64_t layers = model.description().model.num_hidden_layers;
    Outcome outcome{.data = {{"name", options.model.name},
                             {"gpu", traits.name},
                             {"kv_len", options.kv_len},
                             {"layers", layers},
                             {"alone_ms", result.alone.elapsed.count()},
                             {"proving_ms", result.proving.count()},
                             {"steps", Json::array()}}};
    outcome.text = fmt::format("{}, steps of {} layers and the head, {} keys a sequence, on {}\n",
                               options.model.name, layers, options.kv_len, traits.name);
    for (std::size_t i = 0; i < chains.size(); ++i) {
        const std::int64_t floor = model.floor_bytes(chains[i]->sizes().sequences, options.kv_len);
        const double floor_us = 1e6 * static_cast<double>(floor) / traits.memory_bytes_per_s;
        outcome.data["steps"].push_back(json_of(*chains[i], result.steps[i], floor_us));
        outcome.text += '\n' + text_of(*chains[i], result.steps[i], floor_us, console.page);
    }
    return outcome;
}

tuner::ChainStep step_of(StepChain& chain, const TuneChainOptions& options) {
    tuner::ChainStep step{.name = name_of(options, chain.sizes()), .chain = &chain, .kernels = {}};
    for (const StepKernel& kernel : chain.kernels())
        step.kernels.push_back({kernel.problem, kernel.candidate});
    return step;
}

}  // namespace

Outcome tune_chain(const TuneChainOptions& options, const Console& console) {
    const std::int64_t most = std::ranges::max(options.sequences);
    const auto model = loaded_model({.made_up = shortened(options.model),
                                     .quantize = options.quantize,
                                     .kv_dtype = options.kv_dtype,
                                     .device = options.device.ordinal,
                                     .max_sequences = most,
                                     .max_context = timed_context(options.model, options.kv_len),
                                     .may_compile_later = true,
                                     .told_sequences = most},
                                    console);
    const std::atomic<bool>& stop = stop_on_interrupt();  // until here there is nothing to save
    cache::Cache cache = open_user_cache();
    tuner::GpuSession session =
        tuner::open_gpu(cache, options.device, {}, {.arch = {}, .nvrtc = {}, .stop = &stop});
    std::vector<std::unique_ptr<StepChain>> chains;
    std::vector<tuner::ChainStep> steps;
    for (const std::int64_t sequences : options.sequences) {
        for (const Norms norms : ways_of(model->forward(), sequences)) {
            chains.push_back(std::make_unique<StepChain>(
                model->forward(), StepSizes{sequences, options.kv_len}, norms,
                [&](const StepFault& fault) { begin_again(fault, options, cache, console); }));
            steps.push_back(step_of(*chains.back(), options));
            if (norms == Norms::shared) steps.back().instead_of = steps.size() - 2;
        }
    }
    ProgressDisplay display(console);
    const tuner::ChainTuneResult result = tuner::tune_chains(
        steps, options.tune, *session.measurer, *session.images, cache,
        [&](const tuner::Progress& progress) { display.update(progress); }, stop);
    display.finish();
    Outcome outcome = describe(chains, result, *model, options, console);
    set_end(result, stop, console, outcome);
    return outcome;
}

}  // namespace hone::cli
