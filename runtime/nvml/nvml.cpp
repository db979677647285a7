#include "runtime/nvml/nvml.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>

#include "runtime/system/environment.h"

namespace hone::runtime {
namespace {

// The part of NVML's ABI that Hone uses. The toolkit's nvml.h is not needed to build; names and layouts are
// those of the NVML API reference, unchanged since driver 510.
using NvmlResult = int;
using NvmlHandle = struct NvmlOpaqueDevice*;
constexpr NvmlResult nvml_success = 0;
constexpr NvmlResult nvml_insufficient_size = 7;
constexpr int clock_sm = 1;
constexpr int clock_memory = 2;
constexpr int temperature_gpu = 0;

struct ProcessInfo {  // nvmlProcessInfo_t of the _v3 calls
    unsigned int pid;
    unsigned long long used_gpu_memory;
    unsigned int gpu_instance_id;
    unsigned int compute_instance_id;
};
static_assert(sizeof(ProcessInfo) == 24);

constexpr std::uint64_t reason_hw_slowdown = 0x08;
constexpr std::uint64_t reason_sw_thermal_slowdown = 0x20;
constexpr std::uint64_t reason_hw_thermal_slowdown = 0x40;
constexpr std::uint64_t reason_hw_power_brake = 0x80;

// Initialized (NVML counts that) and never shut down: other parts of the process may use NVML too.
struct Nvml {
    SharedLibrary library;
    NvmlResult (*init)() = nullptr;
    NvmlResult (*driver_version)(char*, unsigned int) = nullptr;
    NvmlResult (*handle_by_pci_bus_id)(const char*, NvmlHandle*) = nullptr;
    NvmlResult (*count)(unsigned int*) = nullptr;
    NvmlResult (*handle_by_index)(unsigned int, NvmlHandle*) = nullptr;
    NvmlResult (*device_uuid)(NvmlHandle, char*, unsigned int) = nullptr;
    NvmlResult (*device_name)(NvmlHandle, char*, unsigned int) = nullptr;
    NvmlResult (*mig_mode)(NvmlHandle, unsigned int*, unsigned int*) = nullptr;
    NvmlResult (*clock)(NvmlHandle, int, unsigned int*) = nullptr;
    NvmlResult (*max_clock)(NvmlHandle, int, unsigned int*) = nullptr;
    NvmlResult (*event_reasons)(NvmlHandle, unsigned long long*) = nullptr;
    NvmlResult (*compute_processes)(NvmlHandle, unsigned int*, ProcessInfo*) = nullptr;
    NvmlResult (*total_energy)(NvmlHandle, unsigned long long*) = nullptr;
    NvmlResult (*power)(NvmlHandle, unsigned int*) = nullptr;
    NvmlResult (*temperature)(NvmlHandle, int, unsigned int*) = nullptr;

    template <class Function>
    void resolve(Function& function, std::initializer_list<const char*> names) {
        for (const char* name : names) {
            if (function == nullptr) function = reinterpret_cast<Function>(library.symbol(name));
        }
    }
};

std::vector<std::string> nvml_candidates() {
    if (const std::string override = read_environment().nvml_library; !override.empty()) return {override};
    return {"libnvidia-ml.so.1", "/usr/lib/wsl/lib/libnvidia-ml.so.1",
            "/usr/local/nvidia/lib64/libnvidia-ml.so.1"};
}

// nullptr when there is no NVML, or one that does not start.
std::shared_ptr<const Nvml> load_nvml() {
    const auto nvml = std::make_shared<Nvml>();
    try {
        nvml->library = SharedLibrary::open_first("NVML", nvml_candidates(), "");
    } catch (const LibraryError&) {
        return nullptr;
    }
    nvml->resolve(nvml->init, {"nvmlInit_v2"});
    nvml->resolve(nvml->driver_version, {"nvmlSystemGetDriverVersion"});
    nvml->resolve(nvml->handle_by_pci_bus_id, {"nvmlDeviceGetHandleByPciBusId_v2"});
    nvml->resolve(nvml->count, {"nvmlDeviceGetCount_v2"});
    nvml->resolve(nvml->handle_by_index, {"nvmlDeviceGetHandleByIndex_v2"});
    nvml->resolve(nvml->device_uuid, {"nvmlDeviceGetUUID"});
    nvml->resolve(nvml->device_name, {"nvmlDeviceGetName"});
    nvml->resolve(nvml->mig_mode, {"nvmlDeviceGetMigMode"});
    nvml->resolve(nvml->clock, {"nvmlDeviceGetClockInfo"});
    nvml->resolve(nvml->max_clock, {"nvmlDeviceGetMaxClockInfo"});
    // Renamed in driver 535.
    nvml->resolve(nvml->event_reasons,
                  {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"});
    nvml->resolve(nvml->compute_processes, {"nvmlDeviceGetComputeRunningProcesses_v3"});
    nvml->resolve(nvml->total_energy, {"nvmlDeviceGetTotalEnergyConsumption"});
    nvml->resolve(nvml->power, {"nvmlDeviceGetPowerUsage"});
    nvml->resolve(nvml->temperature, {"nvmlDeviceGetTemperature"});
    if (nvml->init == nullptr || nvml->init() != nvml_success) return nullptr;
    return nvml;
}

/// Calls `function`, if the library has it, with `arguments` and a place for the answer.
template <class Answer, class Function, class... Arguments>
std::optional<Answer> ask(Function function, Arguments... arguments) {
    Answer answer{};
    if (function == nullptr || function(arguments..., &answer) != nvml_success) return std::nullopt;
    return answer;
}

std::string text_of(NvmlResult (*function)(NvmlHandle, char*, unsigned int), NvmlHandle handle) {
    std::array<char, 96> text{};
    const bool is_told =
        function != nullptr &&
        function(handle, text.data(), static_cast<unsigned int>(text.size())) == nvml_success;
    return is_told ? text.data() : "";
}

/// Where MIG is not known of, there is none.
bool is_parted(const Nvml& nvml, NvmlHandle handle) {
    unsigned int now = 0;
    unsigned int later = 0;
    return nvml.mig_mode != nullptr && nvml.mig_mode(handle, &now, &later) == nvml_success && now != 0;
}

class RealNvmlDevice final : public NvmlDevice {
  public:
    RealNvmlDevice(std::shared_ptr<const Nvml> nvml, NvmlHandle handle)
        : nvml_(std::move(nvml)), handle_(handle) {}

    std::optional<ClockState> clocks() const override {
        const auto sm = ask<unsigned int>(nvml_->clock, handle_, clock_sm);
        const auto memory = ask<unsigned int>(nvml_->clock, handle_, clock_memory);
        const auto reasons = ask<unsigned long long>(nvml_->event_reasons, handle_);
        if (!sm || !memory) return std::nullopt;
        return ClockState{.sm_mhz = static_cast<int>(*sm),
                          .memory_mhz = static_cast<int>(*memory),
                          .event_reasons = reasons.value_or(0)};
    }
    std::optional<int> max_memory_mhz() const override { return max_clock(clock_memory); }
    std::optional<int> max_sm_mhz() const override { return max_clock(clock_sm); }

    std::vector<std::int64_t> foreign_processes(const std::vector<std::int64_t>& own) const override {
        std::vector<std::int64_t> foreign;
        for (const ProcessInfo& process : compute_processes()) {
            const auto pid = static_cast<std::int64_t>(process.pid);
            if (std::find(own.begin(), own.end(), pid) == own.end()) foreign.push_back(pid);
        }
        return foreign;
    }

    std::optional<double> energy_mj() const override {
        const auto energy = ask<unsigned long long>(nvml_->total_energy, handle_);
        return energy ? std::optional(static_cast<double>(*energy)) : std::nullopt;
    }
    std::optional<double> power_w() const override {
        const auto milliwatts = ask<unsigned int>(nvml_->power, handle_);
        return milliwatts ? std::optional(*milliwatts / 1e3) : std::nullopt;
    }
    std::optional<int> temperature_c() const override {
        const auto celsius = ask<unsigned int>(nvml_->temperature, handle_, temperature_gpu);
        return celsius ? std::optional(static_cast<int>(*celsius)) : std::nullopt;
    }

  private:
    std::optional<int> max_clock(int which) const {
        const auto mhz = ask<unsigned int>(nvml_->max_clock, handle_, which);
        return mhz ? std::optional(static_cast<int>(*mhz)) : std::nullopt;
    }

    std::vector<ProcessInfo> compute_processes() const {
        if (nvml_->compute_processes == nullptr) return {};
        std::vector<ProcessInfo> processes(32);
        for (int attempt = 0; attempt < 4; ++attempt) {
            auto count = static_cast<unsigned int>(processes.size());
            const NvmlResult result = nvml_->compute_processes(handle_, &count, processes.data());
            if (result == nvml_success) {
                processes.resize(count);
                return processes;
            }
            if (result != nvml_insufficient_size) return {};
            processes.resize(2 *
                             std::max<std::size_t>(count, processes.size()));  // others may start meanwhile
        }
        return {};
    }

    std::shared_ptr<const Nvml> nvml_;
    NvmlHandle handle_;
};

}  // namespace

bool ClockState::throttled() const {
    return (event_reasons & (reason_hw_slowdown | reason_sw_thermal_slowdown | reason_hw_thermal_slowdown |
                             reason_hw_power_brake)) != 0;
}

std::shared_ptr<const NvmlDevice> NvmlDevice::open(const std::string& pci_bus_id) {
    const std::shared_ptr<const Nvml> nvml = load_nvml();
    if (nvml == nullptr) return nullptr;
    const auto handle = ask<NvmlHandle>(nvml->handle_by_pci_bus_id, pci_bus_id.c_str());
    return handle ? std::make_shared<RealNvmlDevice>(nvml, *handle) : nullptr;
}

std::vector<ListedGpu> listed_gpus() {
    const std::shared_ptr<const Nvml> nvml = load_nvml();
    if (nvml == nullptr) return {};
    std::vector<ListedGpu> gpus;
    const unsigned int count = ask<unsigned int>(nvml->count).value_or(0);
    for (unsigned int i = 0; i < count; ++i) {
        const auto handle = ask<NvmlHandle>(nvml->handle_by_index, i);
        if (!handle) return {};
        gpus.push_back({.uuid = text_of(nvml->device_uuid, *handle),
                        .name = text_of(nvml->device_name, *handle),
                        .is_parted = is_parted(*nvml, *handle)});
        if (gpus.back().uuid.empty() || gpus.back().name.empty()) return {};
    }
    return gpus;
}

bool has_nvml() { return load_nvml() != nullptr; }

std::string nvml_driver_version() {
    const std::shared_ptr<const Nvml> nvml = load_nvml();
    std::array<char, 96> text{};
    if (nvml == nullptr || nvml->driver_version == nullptr ||
        nvml->driver_version(text.data(), static_cast<unsigned int>(text.size())) != nvml_success) {
        return {};
    }
    return text.data();
}

}  // namespace hone::runtime
