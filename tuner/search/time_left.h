// How long a run will take yet, from how long its problems took so far. Told the time, it asks no clock. Used
// by one thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernel_templates/problem.h"

namespace hone::tuner {

class TimeLeft {
  public:
    using Milliseconds = std::chrono::milliseconds;

    /// The problems that are to be raced, in order. Those of one family that stand at the same place among
    /// the problems with their static fields take about as long as each other: the first has images to wait
    /// for, the last is the largest.
    explicit TimeLeft(std::span<const Problem> problems);

    /// Whether there is a problem that has not begun.
    [[nodiscard]] bool has_next() const { return next_ < kinds_.size(); }
    /// Another problem to be raced, before those that have not begun.
    void add(const Problem& problem);
    /// So many of those that have not begun are left, the first ones: others have taken the rest.
    void keep(std::size_t waiting);

    /// The next problem starts, `now` after the run did.
    void begin(Milliseconds now);
    /// So much of the current problem's candidates is done.
    void advance(std::size_t done, std::size_t total);
    void end(Milliseconds now);

    /// Nothing before what has ended says something about most of the rest: no time is better than a wrong
    /// one.
    [[nodiscard]] std::optional<Milliseconds> left(Milliseconds now) const;

  private:
    /// A family, and the place among the problems of one static part.
    using Kind = std::pair<std::string, int>;
    struct Spent {
        double ms = 0;
        int problems = 0;
    };

    [[nodiscard]] bool is_known(const Kind& kind) const;
    [[nodiscard]] bool says_enough() const;
    [[nodiscard]] double mean_ms(const Kind& kind) const;
    [[nodiscard]] double current_ms(Milliseconds now) const;

    [[nodiscard]] Kind kind_of(const Problem& problem);

    std::vector<std::pair<Problem, int>> parts_;  ///< with how many problems of each there are
    std::vector<Kind> kinds_;                     ///< of the problems
    std::map<Kind, Spent> spent_;
    std::size_t next_ = 0;  ///< the first problem that has not begun
    bool is_running_ = false;
    Milliseconds began_{};
    double share_done_ = 0;  ///< of the current problem's candidates
};

}  // namespace hone::tuner
