#include "tuner/gpu/energy_meter.h"

#include <algorithm>
#include <thread>

#include "runtime/workers/deadline.h"

namespace hone::tuner {
namespace {

constexpr double batch_us = 20'000;
constexpr double most_replays = 4096;  // in a batch
constexpr auto look_interval = std::chrono::milliseconds(2);
constexpr auto nap = std::chrono::microseconds(100);

double seconds_between(Clock::time_point start, Clock::time_point end) {
    return std::chrono::duration<double>(end - start).count();
}

}  // namespace

void PowerReadings::look(Clock::time_point now) {
    const std::optional<double> counter = device_->energy_mj();
    if (counter && counter_mj_ && *counter > *counter_mj_) {
        const bool first = first_move_ == Clock::time_point{};
        if (first) {
            first_move_ = now;
            first_mj_ = *counter;
        }
        last_move_ = now;
        last_mj_ = *counter;
    }
    counter_mj_ = counter;
    if (counted()) return;
    if (const std::optional<double> power = device_->power_w()) {
        power_sum_w_ += *power;
        ++powers_;
    }
}

std::optional<double> PowerReadings::watts() const {
    if (counted()) return (last_mj_ - first_mj_) * 1e-3 / seconds_between(first_move_, last_move_);
    if (powers_ == 0) return std::nullopt;
    return power_sum_w_ / static_cast<double>(powers_);
}

Sustained EnergyMeter::measure(const Replays& replays, std::chrono::milliseconds duration,
                               Clock::time_point deadline) {
    if (device_.nvml() == nullptr) return {.verdict = {.detail = "NVML does not know this GPU"}};
    const auto count =
        static_cast<std::int64_t>(std::clamp(batch_us / std::max(replays.us, 1e-3), 1.0, most_replays));
    const auto warm_up = std::min(longest_warm_up, duration / 2);
    PowerReadings readings(*device_.nvml());
    Disturbance seen = device_.monitor().look();
    for (std::size_t end = 0; end < ends_.size(); ++end) enqueue(replays, count, end);
    const Clock::time_point begin = Clock::now();
    std::optional<Clock::time_point> start;  // the warm-up's end
    Clock::time_point now;
    std::int64_t batches = 0;
    for (std::size_t end = 0;; end = 1 - end) {
        wait(ends_[end].get(), readings, deadline);
        now = Clock::now();
        if (start && now - *start >= duration) break;
        if (start) {
            ++batches;
        } else if (now - begin >= warm_up) {
            start = now;
            readings = PowerReadings(*device_.nvml());
        }
        enqueue(replays, count, end);
    }
    ++batches;
    seen = std::max(seen, device_.monitor().look());
    device_.finish(deadline);
    const std::int64_t calls = batches * count * replays.calls;
    const double seconds = seconds_between(*start, now);
    const std::optional<double> watts = readings.watts();
    return {.verdict = {.detail = watts ? describe(seen) : "NVML said neither energy nor power"},
            .us = seconds * 1e6 / static_cast<double>(calls),
            .power_w = watts.value_or(0),
            .counted = readings.counted(),
            .seconds = seconds,
            .calls = calls};
}

void EnergyMeter::enqueue(const Replays& replays, std::int64_t count, std::size_t end) {
    const runtime::Driver& driver = device_.driver();
    if (ends_[end].get() == nullptr) ends_[end] = runtime::create_event(driver);
    for (std::int64_t i = 0; i < count; ++i)
        device_.check(driver.cuGraphLaunch(replays.graph, device_.stream()), "launching a graph");
    device_.check(driver.cuEventRecord(ends_[end].get(), device_.stream()), "recording an event");
}

/// Looks at NVML on the way, once at least.
void EnergyMeter::wait(CUevent event, PowerReadings& readings, Clock::time_point deadline) const {
    Clock::time_point next_look{};
    runtime::Deadline limit(deadline);
    do {
        if (limit.has_passed()) throw DeadlinePassed{};
        const Clock::time_point now = Clock::now();
        if (now >= next_look) {
            readings.look(now);
            next_look = now + look_interval;
        }
        std::this_thread::sleep_for(nap);
    } while (!runtime::reached(device_.driver(), event));
}

}  // namespace hone::tuner
