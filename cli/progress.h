// Shows a long run on stderr: a bar with rate and remaining time on a terminal, plain lines at intervals
// elsewhere.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "cli/console.h"
#include "tuner/search/tuner.h"

namespace hone::cli {

/// What tuner::Progress counts where the run is another one.
struct ProgressUnits {
    std::string_view problems = "problems";
    std::string_view candidates = "candidates";
    bool are_alike = false;  ///< one candidate takes as long as another: their rate tells the time left
};

/// "[######----] ", and the line, cut to `width` columns.
[[nodiscard]] std::string progress_bar(const tuner::Progress& progress, std::chrono::milliseconds elapsed,
                                       std::size_t width, const ProgressUnits& units = {});
/// "12/84 problems, 340 candidates, 52/s, about 40 s left: rmsnorm rows=16, best 2.129 us"
[[nodiscard]] std::string progress_line(const tuner::Progress& progress, std::chrono::milliseconds elapsed,
                                        const ProgressUnits& units = {});

class ProgressDisplay {
  public:
    explicit ProgressDisplay(const Console& console, const ProgressUnits& units = {});
    ProgressDisplay(const ProgressDisplay&) = delete;
    ProgressDisplay& operator=(const ProgressDisplay&) = delete;
    /// Removes the bar, so that an error's text stands alone.
    ~ProgressDisplay() { finish(); }
    void update(const tuner::Progress& progress);
    /// Removes the bar.
    void finish();

  private:
    using Clock = std::chrono::steady_clock;
    const Console& console_;
    ProgressUnits units_;
    Clock::time_point started_ = Clock::now();
    Clock::time_point shown_{};
    bool bar_visible_ = false;
};

}  // namespace hone::cli
