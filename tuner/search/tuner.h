// The tuning flow: space -> rank -> compile -> prune by image -> verify -> race -> finals -> store, problem
// by problem. The caller brings the measurer, the image source and the cache; see docs/how-we-measure.md.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cache/cache.h"
#include "tuner/compile/image_source.h"
#include "tuner/measure/measurer.h"
#include "tuner/models/workload.h"

namespace hone::tuner {

enum class Effort : std::uint8_t {
    quick,       ///< the best 16 predictions, the default and the neighbours' winners
    standard,    ///< the best 128
    exhaustive,  ///< every allowed candidate
    known,       ///< the default and the nearest two winners: the problem's own also of an older template
};

struct TuneOptions {
    Effort effort = Effort::standard;
    std::optional<std::chrono::milliseconds> budget;
    bool retune = false;  ///< measure again even where an exact winner is stored
    /// Winners in the cache layers below `cache`: candidates to try as the neighbours' winners are, never
    /// results.
    std::vector<cache::Trial> lower_winners = {};
};

/// One problem's end.
struct ProblemResult {
    Problem problem;
    bool reused = false;  ///< an exact winner was stored already; nothing was measured
    std::optional<cache::Trial> winner;
    std::optional<cache::Trial> fallback;  ///< the default's own trial
    std::optional<cache::Trial> runner_up;
    int candidates = 0;  ///< tried in this run
    int failed = 0;
    std::string failure;  ///< why there is no winner
};

enum class StopReason : std::uint8_t { finished, budget, interrupted };

struct TuneResult {
    std::vector<ProblemResult> problems;
    StopReason stopped = StopReason::finished;
    std::int64_t compiles = 0;
    std::int64_t measurements = 0;  ///< candidates launched
    std::chrono::milliseconds elapsed{};
};

/// What the progress bar and plain lines are made from. Called on the tuning thread.
struct Progress {
    std::size_t problems_done = 0;
    std::size_t problems_total = 0;
    std::size_t candidates_done = 0;   ///< over all problems
    std::size_t candidates_total = 0;  ///< estimate, grows more exact
    std::string current;               ///< "rmsnorm rows=16"
    std::size_t current_done = 0;      ///< of the current problem's candidates
    std::size_t current_total = 0;
    double best_us = 0;                               ///< of the current problem so far; 0: not known
    std::optional<std::chrono::milliseconds> left{};  ///< until the run ends, as far as that can be told
    std::size_t answered = 0;  ///< problems that have a predicted answer before anything was compiled
    std::optional<cache::Trial> finished_winner;  ///< set once when a problem ends
};
using ProgressSink = std::function<void(const Progress&)>;

/// Runs until done, out of budget, or `stop` is set (the trial in flight is finished or given up, everything
/// known is already stored). Never throws for a bad candidate.
[[nodiscard]] TuneResult tune(const Workload& workload, const TuneOptions& options, Measurer& measurer,
                              ImageSource& images, cache::Cache& cache, const ProgressSink& progress,
                              const std::atomic<bool>& stop);

}  // namespace hone::tuner
