// What a candidate takes when it runs without pause: its graph again and again, for so long that NVML's
// energy counter, which moves every 20 to 100 ms, says it well. L2 is not filled between replays as in
// graph_timer.h: what all sets touch does not fit there anyway, or may stay there, and filling it would be
// charged to the candidate. Lives in the measuring worker; one thread.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>

#include "runtime/nvml/nvml.h"
#include "tuner/gpu/device_context.h"

namespace hone::tuner {

/// Mean power of a busy GPU from what NVML says at many points in time: between the first and the last move
/// of its energy counter, or, where that does not move twice, the mean of its power.
class PowerReadings {
  public:
    explicit PowerReadings(const runtime::NvmlDevice& device) : device_(&device) {}

    void look(Clock::time_point now);
    /// nullopt: NVML said neither.
    [[nodiscard]] std::optional<double> watts() const;
    [[nodiscard]] bool counted() const { return last_move_ > first_move_; }

  private:
    const runtime::NvmlDevice* device_;
    std::optional<double> counter_mj_;
    double first_mj_ = 0;  ///< at its first move
    double last_mj_ = 0;
    Clock::time_point first_move_{};
    Clock::time_point last_move_{};
    double power_sum_w_ = 0;
    std::int64_t powers_ = 0;
};

/// A graph that is there already.
struct Replays {
    CUgraphExec graph = nullptr;
    double us = 0;  ///< about what one replay takes
    int calls = 1;  ///< in one replay
};

class EnergyMeter {
  public:
    explicit EnergyMeter(DeviceContext& device) : device_(device) {}

    /// Warms up, then measures for `duration`. Throws CudaError, DeadlinePassed.
    [[nodiscard]] Sustained measure(const Replays& replays, std::chrono::milliseconds duration,
                                    Clock::time_point deadline);

    /// Clocks and the power that NVML says, a mean of a second on many GPUs, follow the load by then.
    static constexpr std::chrono::milliseconds longest_warm_up{1000};

  private:
    void enqueue(const Replays& replays, std::int64_t count, std::size_t end);
    void wait(CUevent event, PowerReadings& readings, Clock::time_point deadline) const;

    DeviceContext& device_;
    std::array<runtime::Event, 2> ends_;  ///< ends of two batches, one of which always waits in the queue
};

}  // namespace hone::tuner
