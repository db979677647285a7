// Tells whether a batch of measurements was disturbed: throttling, a clock that dropped under load, or
// another process on the GPU. Without NVML nothing is ever disturbed. Lives in the measuring worker.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/nvml/nvml.h"
#include "tuner/worker/channel.h"

namespace hone::tuner {

enum class Disturbance : std::uint8_t { none, slow_clock, throttled, foreign_process };

/// In words, for a trial's detail. Empty for none.
[[nodiscard]] std::string describe(Disturbance disturbance);

class GpuMonitor {
  public:
    GpuMonitor() = default;
    /// `ours`: pids under which NVML lists this process (another pid namespace may have another number for
    /// it).
    GpuMonitor(std::shared_ptr<const runtime::NvmlDevice> device, std::vector<std::int64_t> ours);

    /// The worst of what can be seen now. A foreign process disturbs when it is new; one that stays is
    /// reported by `tenant()` and no longer delays anything.
    [[nodiscard]] Disturbance look();
    /// The multiprocessors' clock at the last look; 0 where nobody knows.
    [[nodiscard]] int sm_clock_mhz() const { return sm_clock_mhz_; }
    /// "shares the GPU with process 123", or empty.
    [[nodiscard]] std::string tenant() const;

  private:
    [[nodiscard]] bool new_foreign_process();

    std::shared_ptr<const runtime::NvmlDevice> device_;
    std::vector<std::int64_t> ours_;
    std::vector<std::int64_t> foreign_;
    int max_sm_mhz_ = 0;
    int sm_clock_mhz_ = 0;
    Clock::time_point next_process_check_{};
};

}  // namespace hone::tuner
