#include "cli/tune_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <iterator>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "cli/command.h"
#include "cli/errors.h"
#include "cli/progress.h"
#include "cli/stored.h"
#include "tuner/compile/no_images.h"
#include "tuner/data_files.h"
#include "tuner/measure/gpu_session.h"
#include "tuner/measure/offline_measurer.h"
#include "tuner/measure/recorded.h"
#include "tuner/search/shared_work.h"

namespace hone::cli {
namespace {

using tuner::Workload;

/// The progress of several runs at once, as one.
class SharedProgress {
  public:
    SharedProgress(const Console& console, std::size_t runs)
        : console_(console), display_(console), latest_(runs) {}

    [[nodiscard]] tuner::ProgressSink sink(std::size_t run) {
        return [this, run](const tuner::Progress& progress) {
            const std::scoped_lock lock(mutex_);
            latest_[run] = progress;
            tuner::Progress sum;
            for (const tuner::Progress& one : latest_) {
                sum.problems_done += one.problems_done;
                sum.problems_total += one.problems_total;
                sum.candidates_done += one.candidates_done;
                sum.candidates_total += one.candidates_total;
                sum.left = std::max(sum.left, one.left);  // they run side by side
            }
            sum.current = progress.current;
            sum.best_us = progress.best_us;
            say_answered(progress.answered);
            display_.update(sum);
        };
    }
    void finish() { display_.finish(); }

  private:
    void say_answered(std::size_t problems) {
        if (problems == 0 || std::exchange(has_answered_, true)) return;
        console_.note(
            fmt::format("{} problems have a predicted answer now, as hone list shows them; compiling the "
                        "best of each to be sure (Ctrl-C keeps all of it)",
                        problems));
    }

    const Console& console_;
    bool has_answered_ = false;
    std::mutex mutex_;
    ProgressDisplay display_;
    std::vector<tuner::Progress> latest_;
};

TuneRun run_on_gpu(tuner::SharedWork& work, std::size_t hand, const tuner::DeviceInfo& device,
                   tuner::CompilePool& pool, const TuneContext& context, const tuner::ProgressSink& progress,
                   std::optional<runtime::WorkerProcess> worker) {
    TuneRun run{.device = device, .source = fmt::format("measured on GPU {}", device.ordinal), .result = {}};
    const std::optional<tuner::TuneOptions> options = context.options_now();
    if (!options) {
        [[maybe_unused]] const bool others_go_on = work.agenda.leave(hand);
        run.result.stopped = tuner::StopReason::budget;
        return run;
    }
    std::optional<cache::Cache> cache;
    std::optional<tuner::GpuSession> session;
    std::optional<tuner::RecordingMeasurer> recording;
    try {
        cache.emplace(open_user_cache());
        tuner::GpuMeasurerOptions measuring{.stop = &context.stop};
        if (options->budget) measuring.end = std::chrono::steady_clock::now() + *options->budget;
        session.emplace(tuner::open_gpu(pool, device, measuring));
        if (worker) session->measurer->use_worker(*std::move(worker));
        if (!context.options.record_file.empty())
            recording.emplace(*session->measurer, context.options.record_file);
    } catch (const std::exception& error) {
        run.result.lost = tuner::left_to_others(work, hand, error);
        return run;
    }
    tuner::Measurer& measurer = recording ? static_cast<tuner::Measurer&>(*recording) : *session->measurer;
    run.result =
        tuner::tune(work, hand, *options, measurer, *session->images, *cache, progress, context.stop);
    return run;
}

/// Moves the problems that the recording holds out of `left`.
Workload take_recorded(const tuner::Recording& recording, Workload& left) {
    Workload taken{.name = left.name, .problems = {}, .tuned = {}, .without_family = {}};
    const auto is_held = [&](const Problem& problem) {
        return recording.problems.contains(to_string(problem));
    };
    std::ranges::copy_if(left.problems, std::back_inserter(taken.problems), is_held);
    std::ranges::copy_if(left.captured, std::back_inserter(taken.captured), is_held,
                         &tuner::CapturedUse::problem);
    std::erase_if(left.problems, is_held);
    std::erase_if(left.captured, [&](const tuner::CapturedUse& use) { return is_held(use.problem); });
    return taken;
}

/// One run on this thread, on a measurer that is no GPU.
TuneRun run_alone(const Workload& workload, std::string source, tuner::Measurer& measurer,
                  tuner::ImageSource& images, cache::Cache& cache, const TuneContext& context,
                  std::optional<std::chrono::milliseconds> after_answers = {}) {
    TuneRun run{.device = measurer.device(), .source = std::move(source), .result = {}};
    run.device.ordinal = -1;
    run.is_predicted = measurer.provenance() == cache::Provenance::predicted;
    std::optional<tuner::TuneOptions> options = context.options_now();
    if (!options) {
        run.result.stopped = tuner::StopReason::budget;
        return run;
    }
    options->after_answers = after_answers;
    SharedProgress progress(context.console, 1);
    run.result = tuner::tune(workload, *options, measurer, images, cache, progress.sink(0), context.stop);
    progress.finish();
    return run;
}

/// Which GPUs were given up, why, and that nothing is missing for it.
void say_lost(const std::vector<TuneRun>& runs, const Console& console) {
    for (const TuneRun& run : runs) {
        if (run.result.lost.empty()) continue;
        console.note(fmt::format("GPU {} was given up, and others did the rest of its problems: {}",
                                 run.device.ordinal, run.result.lost));
    }
}

/// In the handler of the exception that ended it.
TuneRun failed_run(const tuner::DeviceInfo& device, const Console& console) {
    TuneRun run{.device = device,
                .source = fmt::format("measured on GPU {}", device.ordinal),
                .result = {},
                .failure = std::current_exception()};
    run.result.lost = outcome_of(run.failure).error->message;
    console.note(fmt::format("GPU {} ({}) failed: {}", device.ordinal, device.gpu.name, run.result.lost));
    return run;
}

/// All GPUs of one kind. What one that fails leaves the others do; the last one's exception is thrown here.
std::vector<TuneRun> run_on_kind(const Workload& workload, std::vector<tuner::DeviceInfo> devices,
                                 const TuneContext& context,
                                 std::optional<runtime::WorkerProcess> first_worker) {
    cache::Cache cache = open_user_cache();
    tuner::CompilePoolOptions options = tuner::pool_for(devices.front());
    options.stop = &context.stop;
    tuner::CompilePool pool(cache, options);
    tuner::SharedWork work(workload, devices.size(), devices.front().traits);
    SharedProgress progress(context.console, work.hands());
    std::vector<TuneRun> runs(work.hands());
    std::vector<std::exception_ptr> failures(work.hands());
    const auto run_hand = [&](std::size_t i) {
        devices[i].toolchain.nvrtc = devices.front().toolchain.nvrtc;
        try {
            std::optional<runtime::WorkerProcess> worker;
            if (i == 0) worker = std::exchange(first_worker, std::nullopt);
            runs[i] = run_on_gpu(work, i, devices[i], pool, context, progress.sink(i), std::move(worker));
        } catch (...) {
            failures[i] = std::current_exception();
            [[maybe_unused]] const bool others_go_on = work.agenda.leave(i);
        }
    };
    {
        std::vector<std::jthread> threads;
        for (std::size_t i = 1; i < work.hands(); ++i) {
            try {
                threads.emplace_back(run_hand, i);
            } catch (const std::system_error& error) {  // no more threads
                runs[i].device = devices[i];
                runs[i].result.lost = tuner::left_to_others(work, i, error);
            }
        }
        run_hand(0);
    }
    progress.finish();
    for (const std::exception_ptr& failure : failures) {
        if (failure) std::rethrow_exception(failure);
    }
    say_lost(runs, context.console);
    return runs;
}

}  // namespace

std::optional<tuner::TuneOptions> TuneContext::options_now() const {
    tuner::TuneOptions now = options.tune_options();
    now.lower_trials = lower_trials;
    if (!now.budget) return now;
    const auto used =
        std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - started);
    if (used >= *now.budget) return std::nullopt;
    now.budget = *now.budget - used;
    return now;
}

std::vector<TuneRun> run_on_gpus(const Workload& workload, const std::vector<tuner::DeviceInfo>& devices,
                                 const TuneContext& context,
                                 std::optional<runtime::WorkerProcess> first_worker) {
    std::vector<TuneRun> runs;
    std::vector<tuner::DeviceInfo> waiting = devices;
    while (!waiting.empty() && !context.stop) {
        const cache::GpuKey kind = waiting.front().gpu;
        const auto same = [&](const tuner::DeviceInfo& device) { return device.gpu == kind; };
        const auto rest = std::stable_partition(waiting.begin(), waiting.end(), same);
        try {
            std::ranges::move(run_on_kind(workload, {waiting.begin(), rest}, context,
                                          std::exchange(first_worker, std::nullopt)),
                              std::back_inserter(runs));
        } catch (...) {
            const bool is_only = runs.empty() && rest == waiting.end();
            if (is_only && !context.stop) throw;
            TuneRun run = failed_run(waiting.front(), context.console);
            if (context.stop) {  // the exit code says that it was asked to
                run.failure = nullptr;
                run.result.stopped = tuner::StopReason::interrupted;
            }
            runs.push_back(std::move(run));
        }
        waiting.erase(waiting.begin(), rest);
    }
    const auto failed = [](const TuneRun& run) { return run.failure != nullptr; };
    if (!runs.empty() && std::ranges::all_of(runs, failed)) std::rethrow_exception(runs.front().failure);
    return runs;
}

std::vector<TuneRun> run_recorded(const Workload& workload, const TuneContext& context, Workload& left) {
    std::vector<std::filesystem::path> files = tuner::config_files("recorded", ".jsonl");
    if (!context.options.replay_file.empty()) files = {context.options.replay_file};
    left = workload;
    std::vector<TuneRun> runs;
    for (const std::filesystem::path& file : files) {
        tuner::Recording recording = tuner::read_recording(file);
        const Workload taken = take_recorded(recording, left);
        if (taken.problems.empty() || context.stop) continue;
        tuner::ReplayMeasurer measurer(std::move(recording));
        tuner::NoImages images;
        cache::Cache cache = open_user_cache();
        runs.push_back(
            run_alone(taken, "replayed from " + file.filename().string(), measurer, images, cache, context));
    }
    return runs;
}

std::vector<TuneRun> run_offline(const Workload& workload, const TuneContext& context,
                                 std::optional<std::chrono::milliseconds> most) {
    const CompilerInfo compiler = find_compiler();
    if (compiler.nvrtc == nullptr) {
        throw Failure(ExitCode::no_gpu,
                      {"no_nvrtc", "no GPU to measure on and no NVRTC to compile with: " + compiler.why_none,
                       compiler.hint});
    }
    const Arch arch = arch_named(context.options.arch);
    tuner::OfflineMeasurer measurer(arch, compiler.version);
    cache::Cache cache = open_user_cache();
    tuner::CompilePool pool(cache, {.arch = arch, .nvrtc = compiler.version, .stop = &context.stop});
    tuner::CompilePool::Share images(pool);
    return {
        run_alone(workload, "predicted for " + context.options.arch, measurer, images, cache, context, most)};
}

}  // namespace hone::cli
