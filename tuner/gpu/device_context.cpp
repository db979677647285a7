#include "tuner/gpu/device_context.h"

#include <unistd.h>

#include <algorithm>
#include <thread>

#include "runtime/nvml/nvml.h"
#include "runtime/workers/deadline.h"

namespace hone::tuner {
namespace {

constexpr auto spin_time = std::chrono::milliseconds(1);
constexpr auto nap = std::chrono::microseconds(100);
/// This process may have stood still since the deadline was set. Less than who asked leaves it for leaving.
constexpr auto least_wait = std::chrono::milliseconds(500);

std::vector<std::int64_t> listed_processes(const runtime::NvmlDevice* nvml) {
    return nvml == nullptr ? std::vector<std::int64_t>{} : nvml->foreign_processes({});
}

}  // namespace

DeviceInfo device_info(const runtime::Driver& driver, int ordinal) {
    return {.traits = runtime::device_traits(driver, ordinal),
            .gpu = runtime::gpu_key(driver, ordinal),
            .toolchain = {.driver = driver.version(), .nvrtc = {}},
            .ordinal = ordinal,
            .uuid = driver.device_count() > 1 ? runtime::device_uuid(driver, ordinal) : ""};
}

// In another pid namespace NVML lists this process under a number it does not know; so whatever appears while
// the context is made is taken for ours.
DeviceContext::DeviceContext(int ordinal) : driver_(runtime::Driver::load()) {
    const std::string bus = runtime::pci_bus_id(*driver_, ordinal);
    nvml_ = runtime::NvmlDevice::open(bus);
    const std::vector<std::int64_t> before = listed_processes(nvml_.get());
    context_.emplace(driver_, ordinal);
    check(driver_->cuCtxSetCurrent(context_->get()), "making the context current");
    stream_ = runtime::create_stream(*driver_);
    done_ = runtime::create_event(*driver_);
    std::vector<std::int64_t> ours{getpid()};
    for (const std::int64_t pid : listed_processes(nvml_.get())) {
        if (std::ranges::find(before, pid) == before.end()) ours.push_back(pid);
    }
    monitor_ = GpuMonitor(nvml_, std::move(ours));
    info_ = device_info(*driver_, ordinal);
}

void DeviceContext::finish(Clock::time_point deadline) const {
    check(driver_->cuEventRecord(done_.get(), stream_.get()), "recording an event");
    wait(done_.get(), deadline);
}

void DeviceContext::wait(CUevent event, Clock::time_point deadline) const {
    const Clock::time_point start = Clock::now();
    runtime::Deadline limit(std::max(deadline, start + least_wait));
    while (!runtime::reached(*driver_, event)) {
        if (limit.has_passed()) throw DeadlinePassed{};
        if (Clock::now() - start > spin_time) std::this_thread::sleep_for(nap);
    }
}

}  // namespace hone::tuner
