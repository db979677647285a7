// Measures as deployed: one CUDA graph calls the candidate on every input set in turn; one sample is one
// replay of it, in microseconds a call. Disturbed batches are discarded and repeated. Lives in the measuring
// worker; one thread.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/cuda/launcher.h"
#include "tuner/gpu/input_sets.h"

namespace hone::tuner {

class GraphTimer {
  public:
    GraphTimer(DeviceContext& device, InputSets& sets) : device_(device), sets_(sets) {}

    /// Captures the candidate's graph unless it is known for this problem, and replays it once untimed. The
    /// workspace is large enough already. A refused launch is the verdict. Throws CudaError, DeadlinePassed.
    [[nodiscard]] Verdict prepare(const std::string& name, const runtime::LoadedPlan& candidate,
                                  const Plan& plan, Clock::time_point deadline);
    /// Replays the named graphs in this order; sample i belongs to the i-th name.
    struct Batch {
        std::vector<double> us;
        std::string disturbance;  ///< empty: undisturbed
        int sm_clock_mhz = 0;     ///< when the last replay had ended; 0: not known
    };
    [[nodiscard]] Batch replay(const std::vector<std::string>& order, Clock::time_point deadline);
    /// The graph that prepare() has captured.
    [[nodiscard]] CUgraphExec graph(const std::string& name) const { return graphs_.at(name).get(); }
    /// Forgets all graphs: the problem's memory is about to change.
    void clear() { graphs_.clear(); }

  private:
    [[nodiscard]] std::vector<double> replay_once(const std::vector<std::string>& order,
                                                  Clock::time_point deadline);
    void warm_up(CUgraphExec graph, Clock::time_point deadline);
    void put_l2_in_order();

    DeviceContext& device_;
    InputSets& sets_;
    std::map<std::string, runtime::GraphExec> graphs_;
    std::vector<std::pair<runtime::Event, runtime::Event>> events_;
    runtime::DeviceBuffer<std::byte> foreign_;  ///< one L2 of data that no candidate touches
    int workspace_moves_ = 0;                   ///< graphs hold the workspace's address
    bool warm_ = false;
    Clock::time_point
        impatient_until_{};  ///< after a batch that stayed disturbed, the next ones are not repeated
};

}  // namespace hone::tuner
