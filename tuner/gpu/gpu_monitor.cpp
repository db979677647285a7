#include "tuner/gpu/gpu_monitor.h"

#include <algorithm>

namespace hone::tuner {
namespace {

constexpr double slow_clock_share = 0.75;  // nvbench's threshold for a clock that has dropped under load
constexpr auto process_check_interval = std::chrono::milliseconds(100);

// NVML clocks event reasons under which a low clock says nothing: idle, application clocks, power cap, sync
// boost, display.
constexpr std::uint64_t expected_reasons = 0x1 | 0x2 | 0x4 | 0x10 | 0x100;

}  // namespace

std::string describe(Disturbance disturbance) {
    switch (disturbance) {
        case Disturbance::none: return {};
        case Disturbance::slow_clock: return "measured while the SM clock was below 75 % of its maximum";
        case Disturbance::throttled: return "measured while the GPU was throttled";
        case Disturbance::foreign_process: return "measured while another process started on the GPU";
    }
    return {};
}

GpuMonitor::GpuMonitor(std::shared_ptr<const runtime::NvmlDevice> device, std::vector<std::int64_t> ours)
    : device_(std::move(device)), ours_(std::move(ours)) {
    if (!device_) return;
    max_sm_mhz_ = device_->max_sm_mhz().value_or(0);
    foreign_ = device_->foreign_processes(ours_);
}

bool GpuMonitor::new_foreign_process() {
    if (Clock::now() < next_process_check_) return false;
    next_process_check_ = Clock::now() + process_check_interval;
    std::vector<std::int64_t> seen = device_->foreign_processes(ours_);
    const bool fresh = std::ranges::any_of(
        seen, [&](std::int64_t pid) { return std::ranges::find(foreign_, pid) == foreign_.end(); });
    foreign_ = std::move(seen);
    return fresh;
}

Disturbance GpuMonitor::look() {
    if (!device_) return Disturbance::none;
    const std::optional<runtime::ClockState> clocks = device_->clocks();
    sm_clock_mhz_ = clocks ? clocks->sm_mhz : 0;
    if (new_foreign_process()) return Disturbance::foreign_process;
    if (!clocks) return Disturbance::none;
    if (clocks->throttled()) return Disturbance::throttled;
    const bool slow =
        max_sm_mhz_ > 0 && clocks->sm_mhz > 0 && clocks->sm_mhz < slow_clock_share * max_sm_mhz_;
    return slow && (clocks->event_reasons & expected_reasons) == 0 ? Disturbance::slow_clock
                                                                   : Disturbance::none;
}

std::string GpuMonitor::tenant() const {
    return foreign_.empty() ? std::string()
                            : "shares the GPU with process " + std::to_string(foreign_.front());
}

}  // namespace hone::tuner
