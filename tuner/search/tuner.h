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
#include "cache/ties.h"
#include "tuner/compile/image_source.h"
#include "tuner/measure/measurer.h"
#include "tuner/models/workload.h"

namespace hone::tuner {

enum class Effort : std::uint8_t {
    quick,  ///< the shortlist of the nearest race; where that was another problem, predictions too; a second
            ///< look at each winner when all have been raced
    standard,    ///< the best 128 predictions besides
    exhaustive,  ///< every allowed candidate
    known,       ///< the default and the nearest two winners: the problem's own also of an older template
};

struct TuneOptions {
    Effort effort = Effort::quick;
    std::optional<std::chrono::milliseconds> budget;
    /// Where every problem has a predicted answer before anything is compiled: ends so long after that.
    std::optional<std::chrono::milliseconds> after_answers = {};
    bool retune = false;  ///< measure again even where an exact winner is stored
    /// At most so many for all sizes of a static problem; at least 1.
    std::optional<std::size_t> kernels = {};
    /// Winners and contenders in the cache layers below `cache`: candidates to try as those of neighbours
    /// are, never results. Asked at most once, and only where a problem is open: reading them takes a tenth
    /// of a second.
    std::function<std::vector<cache::Trial>()> lower_trials = {};
};

/// One problem's end.
struct ProblemResult {
    Problem problem;
    bool reused = false;  ///< an exact winner was stored already; nothing was measured
    std::optional<cache::Trial> winner;
    std::optional<cache::Trial> fallback;  ///< the default's own trial
    std::optional<cache::Trial> runner_up;
    cache::Ties ties{};  ///< with the winner
    int candidates = 0;  ///< tried in this run, again in a second look
    int failed = 0;
    std::string failure;  ///< why there is no winner
};

/// The few kernels that were chosen for all sizes of one static problem.
struct CoverResult {
    Problem problem;  ///< the first of the sizes
    std::size_t sizes = 0;
    std::vector<std::string> kernels{};  ///< candidates
    /// What the sizes lose to their own fastest kernels, geometric mean and worst: 0.01 is 1 %. Nothing where
    /// the winners were stored before this run, and so few.
    std::optional<double> mean_loss{};
    std::optional<double> worst_loss{};
    std::int64_t measurements = 0;  ///< kernels launched for this, at all sizes together
    std::string failure{};          ///< why the winners stay as they were
};

enum class StopReason : std::uint8_t {
    finished,
    answered,  ///< by predictions, and `after_answers` has passed
    budget,
    interrupted,
};

struct TuneResult {
    std::vector<ProblemResult> problems;
    std::vector<CoverResult> covers;  ///< of each static problem, where the options limit its kernels
    StopReason stopped = StopReason::finished;
    std::int64_t compiles = 0;
    std::int64_t measurements = 0;  ///< candidates launched
    std::chrono::milliseconds elapsed{};
    std::chrono::milliseconds measuring{};  ///< of it the GPU's worker was at work so long; zero: no GPU
    std::chrono::milliseconds waiting{};    ///< and the tuner waited so long for images
    std::string lost{};  ///< why this GPU was given up, where others have done what was left of its problems
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
};
using ProgressSink = std::function<void(const Progress&)>;

/// Runs until done, out of budget, or `stop` is set (the trial in flight is finished or given up, everything
/// known is already stored). Never throws for a bad candidate.
[[nodiscard]] TuneResult tune(const Workload& workload, const TuneOptions& options, Measurer& measurer,
                              ImageSource& images, cache::Cache& cache, const ProgressSink& progress,
                              const std::atomic<bool>& stop);

}  // namespace hone::tuner
