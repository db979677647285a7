// The kernels of a model's steps: each problem alone first, then together, as they run. Two passes: who came
// close alone, and neighbours; then what is like the first pass' winners. Of two ways to compute a step the
// shorter one is kept. Used by one thread.
#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "tuner/search/chain_race.h"
#include "tuner/search/tuner.h"

namespace hone::tuner {

struct ChainKernel {
    Problem problem;
    Candidate candidate;
};

/// A step that is to be tuned.
struct ChainStep {
    std::string name;  ///< what its winners are stored with: "llama-3-8b tokens=8 kv=1024"
    Chain* chain = nullptr;
    std::vector<ChainKernel> kernels;  ///< by place, as the step has them
    /// Which of the steps in front of this one is the same computed in another way, that stays unless this
    /// way is shorter by a fifth of a percent.
    std::optional<std::size_t> instead_of{};
};

struct ChainStepResult {
    std::vector<Candidate> alone;    ///< of each place, the winner alone
    std::vector<Candidate> kernels;  ///< in the end
    std::vector<ChainTrial> trials;
    bool is_complete = false;  ///< every place was tried, of both ways where there are two; else nothing is
                               ///< stored
    bool is_kept = false;      ///< complete, and of two ways to compute a step the one that stays
    bool reused = false;       ///< all were chosen in a step before, and hold: nothing was measured
    double before_us = 0;      ///< the step with the winners alone, measured beside
    double after_us = 0;       ///< the step in the end
    double ratio =
        0;  ///< of ChainStep::instead_of: to the time of that, over several lengths; 0: not measured
    std::chrono::milliseconds elapsed{};
};

struct ChainTuneResult {
    TuneResult alone;
    std::vector<ChainStepResult> steps;  ///< as far as the run came
    std::chrono::milliseconds proving{};
};

/// Winners of steps are stored as Trial::chain says; they hold their place against what wins alone. Of a way
/// to compute a step that is not kept, those that the other way has none of are, and say so: a later run
/// knows, and whoever runs the step.
[[nodiscard]] ChainTuneResult tune_chains(const std::vector<ChainStep>& steps, const TuneOptions& options,
                                          Measurer& measurer, ImageSource& images, cache::Cache& cache,
                                          const ProgressSink& progress, const std::atomic<bool>& stop);

/// For a Chain whose GPU did not survive a candidate in a step, crashed or timed_out: it is not tried again.
void store_fault(const Problem& problem, const Candidate& candidate, cache::TrialStatus status,
                 const std::string& why, const DeviceInfo& device, cache::Cache& cache);

}  // namespace hone::tuner
