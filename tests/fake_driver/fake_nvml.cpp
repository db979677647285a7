// libfake_nvml.so: NVML for the fake machine's GPUs, idle and cool unless HONE_FAKE_SCRIPT (script.h) says
// otherwise. With prototypes of its own, as there is no nvml.h to build with. Thread-safe.
#include <strings.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "tests/fake_driver/devices.h"
#include "tests/fake_driver/script.h"

namespace {

using namespace hone::fake;

constexpr int success = 0;
constexpr int invalid_argument = 2;
constexpr int not_supported = 3;
constexpr int not_found = 6;
constexpr int insufficient_size = 7;
constexpr int driver_not_loaded = 9;
constexpr int clock_memory = 2;

struct ProcessInfo {
    unsigned int pid;
    unsigned long long used_gpu_memory;
    unsigned int gpu_instance_id;
    unsigned int compute_instance_id;
};

std::mutex mutex;

Script& script() {
    static Script current = Script::from_environment();
    const char* value = std::getenv("HONE_FAKE_SCRIPT");
    if (current.text() != (value == nullptr ? "" : value)) current = Script::from_environment();
    return current;
}

bool refused(const char* function) {
    for (const Rule* rule : script().settings("nvml", "refuse")) {
        if (rule->text("refuse") == function) return true;
    }
    return false;
}

// A handle is the device's number plus one.
FakeDevice* device_of(void* handle) {
    static std::vector<FakeDevice> devices;
    devices = devices_of(script());
    const auto number = reinterpret_cast<std::uintptr_t>(handle);
    return number == 0 || number > devices.size() ? nullptr : &devices[number - 1];
}

// Answers with answer(device), unless the script refuses the function.
template <class Answer, class Function>
int answer(const char* function, void* handle, Answer* out, Function value) {
    const std::lock_guard lock(mutex);
    const FakeDevice* device = device_of(handle);
    if (device == nullptr) return invalid_argument;
    if (refused(function)) return not_supported;
    *out = static_cast<Answer>(value(*device));
    return success;
}

int max_clock_mhz(const FakeDevice& device, int which) {
    const auto attribute =
        which == clock_memory ? CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE : CU_DEVICE_ATTRIBUTE_CLOCK_RATE;
    return device.attribute(attribute) / 1000;
}

long long power_mw() {
    const Rule* rule = script().setting("nvml", "power_mw");
    return rule == nullptr ? 350'000 : rule->number("power_mw");
}

}  // namespace

extern "C" {

int nvmlInit_v2() {
    const std::lock_guard lock(mutex);
    return script().setting("nvml", "none") == nullptr ? success : driver_not_loaded;
}

int nvmlSystemGetDriverVersion(char* text, unsigned int length) {
    const std::lock_guard lock(mutex);
    const Rule* rule = script().setting("nvml", "version");
    std::strncpy(text, rule == nullptr ? "580.00.00" : rule->text("version").c_str(), length - 1);
    return success;
}

int nvmlDeviceGetCount_v2(unsigned int* count) {
    const std::lock_guard lock(mutex);
    *count = static_cast<unsigned int>(devices_of(script()).size());
    return success;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void** handle) {
    *handle = reinterpret_cast<void*>(std::uintptr_t{index} + 1);
    return success;
}

int nvmlDeviceGetUUID(void* handle, char* text, unsigned int length) {
    const std::lock_guard lock(mutex);
    const FakeDevice* device = device_of(handle);
    if (device == nullptr) return invalid_argument;
    if (refused("nvmlDeviceGetUUID")) return not_supported;
    std::strncpy(text, uuid_text(*device).c_str(), length - 1);
    return success;
}

int nvmlDeviceGetName(void* handle, char* text, unsigned int length) {
    const std::lock_guard lock(mutex);
    const FakeDevice* device = device_of(handle);
    if (device == nullptr) return invalid_argument;
    std::strncpy(text, device->name.c_str(), length - 1);
    return success;
}

int nvmlDeviceGetMigMode(void* handle, unsigned int* now, unsigned int* later) {
    *later = 0;
    return answer("nvmlDeviceGetMigMode", handle, now, [](const FakeDevice& device) {
        return device.name.find("MIG") == std::string::npos ? 0 : 1;
    });
}

int nvmlDeviceGetHandleByPciBusId_v2(const char* id, void** handle) {
    const std::lock_guard lock(mutex);
    const std::vector<FakeDevice> devices = devices_of(script());
    for (std::size_t i = 0; i < devices.size(); ++i) {
        if (strcasecmp(devices[i].pci_bus_id.c_str(), id) != 0) continue;
        *handle = reinterpret_cast<void*>(i + 1);
        return success;
    }
    return not_found;
}

int nvmlDeviceGetClockInfo(void* handle, int which, unsigned int* mhz) {
    return answer("nvmlDeviceGetClockInfo", handle, mhz, [&](const FakeDevice& device) {
        const Rule* rule = which == clock_memory ? nullptr : script().setting("nvml", "sm_mhz");
        return rule == nullptr ? max_clock_mhz(device, which) : static_cast<int>(rule->number("sm_mhz"));
    });
}

int nvmlDeviceGetMaxClockInfo(void* handle, int which, unsigned int* mhz) {
    return answer("nvmlDeviceGetMaxClockInfo", handle, mhz,
                  [&](const FakeDevice& device) { return max_clock_mhz(device, which); });
}

int nvmlDeviceGetCurrentClocksEventReasons(void* handle, unsigned long long* reasons) {
    return answer("nvmlDeviceGetCurrentClocksEventReasons", handle, reasons, [](const FakeDevice&) {
        unsigned long long mask = 0;
        for (const Rule* rule : script().fire("nvml", {}))
            mask |= static_cast<unsigned long long>(rule->number("throttle"));
        return mask;
    });
}

int nvmlDeviceGetComputeRunningProcesses_v3(void* handle, unsigned int* count, ProcessInfo* processes) {
    const std::lock_guard lock(mutex);
    if (device_of(handle) == nullptr) return invalid_argument;
    if (refused("nvmlDeviceGetComputeRunningProcesses_v3")) return not_supported;
    const std::vector<const Rule*> tenants = script().settings("nvml", "tenant");
    const unsigned int room = *count;
    *count = static_cast<unsigned int>(tenants.size());
    if (room < tenants.size()) return insufficient_size;
    for (std::size_t i = 0; i < tenants.size(); ++i) {
        processes[i] = {.pid = static_cast<unsigned int>(tenants[i]->number("tenant")),
                        .used_gpu_memory = 1 << 30,
                        .gpu_instance_id = ~0u,
                        .compute_instance_id = ~0u};
    }
    return success;
}

int nvmlDeviceGetTotalEnergyConsumption(void* handle, unsigned long long* millijoules) {
    return answer("nvmlDeviceGetTotalEnergyConsumption", handle, millijoules, [](const FakeDevice&) {
        using std::chrono::milliseconds;
        static const auto loaded = std::chrono::steady_clock::now();
        const auto time = std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - loaded);
        return 1'000'000 + power_mw() * time.count() / 1000;
    });
}

int nvmlDeviceGetPowerUsage(void* handle, unsigned int* milliwatts) {
    return answer("nvmlDeviceGetPowerUsage", handle, milliwatts,
                  [](const FakeDevice&) { return power_mw(); });
}

int nvmlDeviceGetTemperature(void* handle, int, unsigned int* celsius) {
    return answer("nvmlDeviceGetTemperature", handle, celsius, [](const FakeDevice&) { return 45; });
}

}  // extern "C"
