// What this machine has: GPUs behind the driver, and NVRTC. Asking never fails; the answer says why there is
// none.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/console.h"
#include "runtime/nvrtc/nvrtc.h"
#include "runtime/workers/process.h"
#include "tuner/measure/measurer.h"

namespace hone::cli {

struct Gpus {
    std::vector<tuner::DeviceInfo> devices;
    std::string driver_version;  ///< empty without a driver
    std::string library;         ///< which libcuda was opened
    std::string why_none;        ///< empty when there is a device
    std::string hint;
    /// One of the first device, where there is one already.
    std::optional<runtime::WorkerProcess> first_worker{};
};
[[nodiscard]] Gpus find_gpus();
/// The same, sooner, where NVML lists several of one kind: the driver is opened for the first of them alone,
/// in another process. The others are taken to be like it; who measures on one finds out if it is not.
[[nodiscard]] Gpus find_all_gpus();

/// "not available", and the variable that names what cannot be used.
[[nodiscard]] std::string without_nvml();
/// What a run that measures misses where there is none.
void warn_without_nvml(const Console& console);

struct CompilerInfo {
    std::shared_ptr<const runtime::Nvrtc> nvrtc;  ///< null: none
    std::string version;
    std::string why_none;
    std::string hint;
};
[[nodiscard]] CompilerInfo find_compiler();

/// The devices that `--gpu N|all` names; all of `gpus` for "all", the first one for "". Throws Failure
/// (usage) for a text that is neither, Failure (no_gpu) for a number that is not there.
[[nodiscard]] std::vector<tuner::DeviceInfo> chosen_gpus(const Gpus& gpus, const std::string& option);

}  // namespace hone::cli
