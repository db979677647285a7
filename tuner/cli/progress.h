// Shows a tuning run on stderr: a bar with rate and remaining time on a terminal, plain lines at intervals
// elsewhere.
#pragma once

#include <chrono>
#include <string>

#include "tuner/cli/console.h"
#include "tuner/tuner.h"

namespace hone::cli {

/// "[######----] 12/84 problems  340 candidates  52/s  about 40 s left  rmsnorm ... rows=16", cut to `width`
/// columns.
[[nodiscard]] std::string progress_bar(const tuner::Progress& progress, std::chrono::milliseconds elapsed,
                                       std::size_t width);
/// "12/84 problems, 340 candidates, 52/s, about 40 s left"
[[nodiscard]] std::string progress_line(const tuner::Progress& progress, std::chrono::milliseconds elapsed);

class ProgressDisplay {
  public:
    explicit ProgressDisplay(const Console& console);
    void update(const tuner::Progress& progress);
    /// Removes the bar.
    void finish();

  private:
    using Clock = std::chrono::steady_clock;
    const Console& console_;
    Clock::time_point started_ = Clock::now();
    Clock::time_point shown_{};
    bool bar_visible_ = false;
};

}  // namespace hone::cli
