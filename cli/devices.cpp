#include "cli/devices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <future>
#include <system_error>

#include "cli/command.h"
#include "kernel_templates/text.h"
#include "runtime/cuda/driver.h"
#include "runtime/nvml/nvml.h"
#include "runtime/system/environment.h"
#include "tuner/gpu/device_context.h"
#include "tuner/measure/gpu_measurer.h"

namespace hone::cli {
namespace {

/// Whether the driver shows all of so many GPUs: none are hidden, or each has its number in the list.
bool are_all_visible(std::size_t gpus) {
    if (!runtime::is_set("CUDA_VISIBLE_DEVICES")) return true;
    const std::string visible = runtime::environment_variable("CUDA_VISIBLE_DEVICES");  // empty: none
    std::vector<std::string> numbers;
    for (std::size_t i = 0; i < gpus; ++i) numbers.push_back(std::to_string(i));
    return visible == fmt::format("{}", fmt::join(numbers, ","));
}

/// UUIDs of all that the driver shows, where that are several whole ones of one name.
std::vector<std::string> alike_gpus() {
    const std::vector<runtime::ListedGpu> gpus = runtime::listed_gpus();
    std::vector<std::string> uuids;
    for (const runtime::ListedGpu& gpu : gpus) {
        if (gpu.is_parted || gpu.name != gpus.front().name) return {};
        uuids.push_back(gpu.uuid);
    }
    if (uuids.size() < 2 || !are_all_visible(uuids.size())) return {};
    return uuids;
}

// A quarter of a second each for compiler and driver where the machine has just started, so side by side.
std::future<CompilerInfo> compiler_to_come() {
    try {
        return std::async(std::launch::async, find_compiler);
    } catch (const std::system_error&) {  // no more threads: whoever asks looks
        return std::async(std::launch::deferred, find_compiler);
    }
}

Gpus driver_gpus(std::future<CompilerInfo> compiler) {
    Gpus gpus;
    try {
        const std::shared_ptr<const runtime::Driver> driver = runtime::Driver::load();
        gpus.driver_version = driver->version();
        gpus.library = driver->library_path();
        const std::string nvrtc = compiler.get().version;
        for (int ordinal = 0; ordinal < driver->device_count(); ++ordinal) {
            gpus.devices.push_back(tuner::device_info(*driver, ordinal));
            gpus.devices.back().toolchain.nvrtc = nvrtc;
        }
        if (gpus.devices.empty()) gpus.why_none = "the driver sees no GPU";
    } catch (const runtime::LibraryError& missing) {
        gpus.why_none = missing.what();
        gpus.hint = missing.hint();
    } catch (const runtime::CudaError& error) {
        gpus.why_none = error.what();
        gpus.hint = "check that the GPU is visible to this process (CUDA_VISIBLE_DEVICES, container options)";
        gpus.devices.clear();
    }
    return gpus;
}

}  // namespace

std::string without_nvml() {
    const std::string named = runtime::environment_variable("HONE_NVML_LIBRARY");
    if (named.empty()) return "not available";
    return fmt::format("not available from {}, which HONE_NVML_LIBRARY names, and no other is tried", named);
}

void warn_without_nvml(const Console& console) {
    if (runtime::has_nvml()) return;
    console.warn(fmt::format("NVML is {}: measuring works, but cannot see throttling or other processes",
                             without_nvml()));
}

CompilerInfo find_compiler() {
    CompilerInfo info;
    try {
        info.nvrtc = runtime::Nvrtc::load();
        info.version = info.nvrtc->version();
    } catch (const runtime::LibraryError& missing) {
        info.nvrtc = nullptr;
        info.why_none = missing.what();
        info.hint = missing.hint();
    }
    return info;
}

Gpus find_gpus() { return driver_gpus(compiler_to_come()); }

Gpus find_all_gpus() {
    std::future<CompilerInfo> compiler = compiler_to_come();
    const std::vector<std::string> uuids = alike_gpus();
    std::optional<tuner::DescribedGpu> first =
        uuids.empty() ? std::nullopt : tuner::described_gpu(uuids.front());
    if (!first) return driver_gpus(std::move(compiler));
    Gpus gpus;
    gpus.driver_version = first->device.toolchain.driver;
    gpus.first_worker = std::move(first->worker);
    const std::string nvrtc = compiler.get().version;
    for (const std::string& uuid : uuids) {
        tuner::DeviceInfo& gpu = gpus.devices.emplace_back(first->device);
        gpu.ordinal = static_cast<int>(gpus.devices.size()) - 1;
        gpu.uuid = uuid;
        gpu.toolchain.nvrtc = nvrtc;
    }
    return gpus;
}

std::vector<tuner::DeviceInfo> chosen_gpus(const Gpus& gpus, const std::string& option) {
    if (gpus.devices.empty())
        throw Failure(ExitCode::no_gpu, {"no_gpu", "no usable GPU: " + gpus.why_none, gpus.hint});
    if (option == "all") return gpus.devices;
    if (option.empty()) return {gpus.devices.front()};
    const std::optional<std::int64_t> ordinal = parse_integer(option);
    if (!ordinal) {
        throw Failure::usage("bad_gpu", fmt::format("--gpu '{}': give a number or 'all'", option));
    }
    for (const tuner::DeviceInfo& device : gpus.devices) {
        if (device.ordinal == *ordinal) return {device};
    }
    throw Failure(
        ExitCode::no_gpu,
        {"no_gpu", fmt::format("--gpu {}: this machine has GPUs 0 to {}", *ordinal, gpus.devices.size() - 1),
         ""});
}

}  // namespace hone::cli
