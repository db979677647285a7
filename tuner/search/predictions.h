// The candidates that the cost model puts first, worked out by threads ahead of their use: a space of 100,000
// candidates takes a third of a second, and a GPU would wait for it. May be used by any thread.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <limits>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "kernel_templates/family.h"

namespace hone::tuner {

/// How many candidates are wanted by prediction.
struct PredictionShare {
    std::size_t best = 0;
    /// So that a model that misjudges a variant as a whole cannot keep it out.
    std::size_t of_each_variant = 0;
    /// Times the best: none that is slower for that.
    double variant_limit = std::numeric_limits<double>::infinity();
    /// The first by prediction of which the best are a shortlist (shortlist.h), so that twins do not take
    /// each other's places; 0: they are the first themselves.
    std::size_t pool = 0;
    /// The same of each variant.
    std::size_t variant_pool = 0;

    friend bool operator==(const PredictionShare&, const PredictionShare&) = default;
};

/// The best of the problem's space by prediction, or of its pool, then the best few of every variant; some
/// stand there twice.
[[nodiscard]] std::vector<Candidate> best_predictions(const Problem& problem, const DeviceTraits& traits,
                                                      PredictionShare share);

class Predictions {
  public:
    explicit Predictions(const DeviceTraits& traits);
    Predictions(const Predictions&) = delete;
    Predictions& operator=(const Predictions&) = delete;
    ~Predictions();

    /// Starts to work them out, unless they are too many to keep. `place` is the problem's in its GPU's list:
    /// those of all GPUs' first problems come first.
    void prefetch(const Problem& problem, PredictionShare share, std::size_t place);
    /// Waits for them, or works them out here where nobody has begun.
    [[nodiscard]] std::vector<Candidate> get(const Problem& problem, PredictionShare share);

  private:
    enum class State : std::uint8_t { idle, queued, running, done };
    struct Job {
        Problem problem;
        PredictionShare share;
        State state = State::idle;
        std::size_t place = 0;
        std::vector<Candidate> candidates;
    };

    Job& job_of(const Problem& problem, PredictionShare share);
    void serve();
    void work_on(Job& job, std::unique_lock<std::mutex>& lock);

    const DeviceTraits traits_;
    std::mutex mutex_;
    std::condition_variable work_;
    std::condition_variable changed_;  // a job's state
    bool stopping_ = false;
    std::map<std::string, Job> jobs_;  ///< by problem; addresses are stable
    std::deque<Job*> queue_;
    std::vector<std::thread> threads_;
};

}  // namespace hone::tuner
