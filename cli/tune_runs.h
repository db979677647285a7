// Runs a workload with whatever can answer: GPUs of this machine, recorded sweeps, or the cost model.
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/devices.h"
#include "cli/tune_options.h"
#include "tuner/measure/measurer.h"
#include "tuner/search/tuner.h"

namespace hone::cli {

/// One workload (or a share of it) on one device.
struct TuneRun {
    tuner::DeviceInfo device;
    std::string source;  ///< "measured on GPU 0", "replayed from h100-sxm.json", "predicted for sm_90a"
    tuner::TuneResult result;
    bool is_predicted = false;     ///< `device` is a datasheet's: nothing was measured
    std::exception_ptr failure{};  ///< ended the run of this kind of GPU, of which `device` is the first
};

struct TuneContext {
    const TuneCommandOptions& options;
    const Console& console;
    const std::atomic<bool>& stop;
    /// As tuner::TuneOptions has it; may be called by several threads.
    std::function<std::vector<cache::Trial>()> lower_trials;
    std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();

    /// The options with lower_trials and what is left of the budget; nothing when it has ended.
    [[nodiscard]] std::optional<tuner::TuneOptions> options_now() const;
};

/// GPUs of one kind share the problems and run at the same time; kinds run one after the other.
/// `first_worker` is one of the first device, started by this thread. A kind that fails leaves the others
/// what they do: its run says why. Where all fail, throws what the first one did: NoDeviceError and
/// LibraryError when a GPU or NVRTC cannot be opened.
[[nodiscard]] std::vector<TuneRun> run_on_gpus(const tuner::Workload& workload,
                                               const std::vector<tuner::DeviceInfo>& devices,
                                               const TuneContext& context,
                                               std::optional<runtime::WorkerProcess> first_worker = {});

/// Recorded sweeps for the problems that they hold; the rest is returned in `left`.
[[nodiscard]] std::vector<TuneRun> run_recorded(const tuner::Workload& workload, const TuneContext& context,
                                                tuner::Workload& left);

/// Predicts, then compiles with NVRTC what may win, to prune by image, for so long at most. Throws
/// LibraryError without NVRTC.
[[nodiscard]] std::vector<TuneRun> run_offline(const tuner::Workload& workload, const TuneContext& context,
                                               std::optional<std::chrono::milliseconds> most = {});

}  // namespace hone::cli
