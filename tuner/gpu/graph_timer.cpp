#include "tuner/gpu/graph_timer.h"

#include <algorithm>
#include <thread>

#include <fmt/format.h>

namespace hone::tuner {
namespace {

constexpr std::size_t max_graphs = 256;
constexpr std::size_t max_batch = 64;  // replays in the stream's queue at a time
constexpr int max_repeats = 4;
constexpr auto first_pause = std::chrono::milliseconds(50);
constexpr auto warm_up_time = std::chrono::milliseconds(30);
constexpr auto impatience = std::chrono::seconds(5);

/// Thrown out of the capture when the driver refuses a launch.
struct LaunchRefused {
    CUresult result;
};

}  // namespace

Verdict GraphTimer::prepare(const std::string& name, const runtime::LoadedPlan& candidate, const Plan& plan,
                            Clock::time_point deadline) {
    if (graphs_.size() >= max_graphs || workspace_moves_ != sets_.workspace_moves()) graphs_.clear();
    workspace_moves_ = sets_.workspace_moves();
    if (graphs_.contains(name)) return {};
    const auto all_calls = [&] {
        for (int i = 0; i < sets_.calls(); ++i) {
            const CUresult result = runtime::launch(device_.driver(), candidate, plan,
                                                    sets_.call(i % sets_.count()), device_.stream());
            if (result != CUDA_SUCCESS) throw LaunchRefused{result};
        }
    };
    try {
        graphs_[name] = runtime::capture_graph(device_.driver(), device_.stream(), all_calls);
    } catch (const LaunchRefused& refused) {
        graphs_.erase(name);
        if (runtime::is_sticky(refused.result)) device_.check(refused.result, "capturing the candidate");
        return {.status = cache::TrialStatus::launch_failed,
                .detail = fmt::format("the driver refused the launch in a graph: error {}",
                                      static_cast<int>(refused.result))};
    }
    warm_up(graphs_[name].get(), deadline);
    return {};
}

/// The first graph of a worker also wakes the clocks.
void GraphTimer::warm_up(CUgraphExec graph, Clock::time_point deadline) {
    const Clock::time_point start = Clock::now();
    do {
        device_.check(device_.driver().cuGraphLaunch(graph, device_.stream()), "launching a graph");
        if (!warm_) device_.finish(deadline);
    } while (!warm_ && Clock::now() - start < warm_up_time);
    warm_ = true;
}

std::vector<double> GraphTimer::replay_once(const std::vector<std::string>& order,
                                            Clock::time_point deadline) {
    while (events_.size() < std::min(order.size(), max_batch)) {
        events_.emplace_back(runtime::create_event(device_.driver()),
                             runtime::create_event(device_.driver()));
    }
    const runtime::Driver& driver = device_.driver();
    std::vector<double> us;
    for (std::size_t done = 0; done < order.size();) {
        const std::size_t batch = std::min(order.size() - done, max_batch);
        for (std::size_t i = 0; i < batch; ++i) {
            const auto& [start, stop] = events_[i];
            put_l2_in_order();
            device_.check(driver.cuEventRecord(start.get(), device_.stream()), "recording an event");
            device_.check(driver.cuGraphLaunch(graphs_.at(order[done + i]).get(), device_.stream()),
                          "launching a graph");
            device_.check(driver.cuEventRecord(stop.get(), device_.stream()), "recording an event");
        }
        device_.wait(events_[batch - 1].second.get(), deadline);
        for (std::size_t i = 0; i < batch; ++i) {
            const auto& [start, stop] = events_[i];
            us.push_back(runtime::elapsed_us(driver, start.get(), stop.get()) / sets_.calls());
        }
        done += batch;
    }
    return us;
}

/// What another operator leaves behind: L2 full of lines that have yet to be written back. Without it a
/// replay would find its own data there, and what it leaves dirty would be charged to nobody. Small
/// activations are warm in a model; here, too, after whichever candidate: some ask L2 to keep nothing of what
/// they read, and their successors were up to 7 % slower for it.
void GraphTimer::put_l2_in_order() {
    const std::int64_t l2_bytes = device_.info().traits.l2_bytes;
    if (sets_.touched_bytes() < l2_bytes) {
        sets_.warm_inputs();
        return;
    }
    const auto bytes = static_cast<std::size_t>(l2_bytes);
    if (foreign_.bytes() < bytes) foreign_ = runtime::DeviceBuffer<std::byte>(device_.driver(), bytes);
    device_.check(device_.driver().cuMemsetD8Async(foreign_.address(), 0, bytes, device_.stream()),
                  "filling L2");
}

GraphTimer::Batch GraphTimer::replay(const std::vector<std::string>& order, Clock::time_point deadline) {
    GpuMonitor& monitor = device_.monitor();
    auto pause = std::chrono::duration_cast<std::chrono::microseconds>(first_pause);
    for (int repeat = 0;; ++repeat) {
        Disturbance seen = monitor.look();
        std::vector<double> us = replay_once(order, deadline);
        const Disturbance after = monitor.look();
        seen = std::max(seen, after);
        if (seen == Disturbance::none) return {std::move(us), monitor.tenant(), monitor.sm_clock_mhz()};
        const bool give_up =
            repeat + 1 >= max_repeats || Clock::now() < impatient_until_ || Clock::now() + pause >= deadline;
        if (give_up) {
            impatient_until_ = Clock::now() + impatience;
            return {std::move(us), describe(seen), monitor.sm_clock_mhz()};
        }
        if (seen != Disturbance::slow_clock)
            std::this_thread::sleep_for(pause);  // a slow clock wakes under load
        pause = pause * 3 / 2;
    }
}

}  // namespace hone::tuner
