// What a run tells its progress sink: what is done, what is at work and how long the rest takes. Used by one
// thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "tuner/search/problem_tuner.h"
#include "tuner/search/shared_work.h"
#include "tuner/search/time_left.h"

namespace hone::tuner {

class RunProgress {
  public:
    /// For one hand of the work, whose run started then; `is_open` by problem: not answered already. All must
    /// outlive this.
    RunProgress(const SharedWork& work, std::size_t hand, const std::vector<bool>& is_open,
                const RunContext& run, const ProgressSink& sink, std::chrono::steady_clock::time_point start);

    /// These are to be raced.
    void expect_races(const std::vector<Problem>& open) { time_left_.emplace(open); }
    /// Races are over and looks come next, with this one first; heard once.
    void begin_looks(const Agenda::Task& first);
    /// It comes next: what is taken from others was not foreseen.
    void expect(const Agenda::Task& task);

    /// So many problems have answers from predictions.
    void answered(std::size_t problems);
    /// A problem begins that an earlier run has answered, or one whose candidates follow.
    void begin(const Problem& problem, bool is_reused);
    void list(std::size_t candidates);
    void candidate_done(double best_us);
    /// Its race or look has ended.
    void end() { time_left_->end(now()); }
    void problem_done();
    /// Something else is at work.
    void show(std::string what);

  private:
    [[nodiscard]] std::chrono::milliseconds now() const;
    [[nodiscard]] std::size_t waiting() const;
    [[nodiscard]] std::size_t expected_in_races();
    void report();

    const SharedWork& work_;
    const std::size_t hand_;
    const std::vector<bool>& is_open_;
    const RunContext& run_;
    const ProgressSink& sink_;
    const std::chrono::steady_clock::time_point start_;
    Progress progress_;
    std::optional<TimeLeft> time_left_;
    std::size_t candidates_listed_ = 0;
    std::vector<std::optional<std::size_t>> expected_;  ///< candidates by problem, before there is a list
    bool are_looks_ = false;
};

}  // namespace hone::tuner
