// A moment that one waits for, for processes that may be made to stand still: by Ctrl-Z, by a scheduler that
// suspends jobs, by a container that is paused. Used by one thread.
#pragma once

#include <algorithm>
#include <chrono>

namespace hone::runtime {

/// Is asked every half second or sooner. Who was not for much longer stood still, and what it waits for may
/// have done so, too: the moment is put off by that time.
class Deadline {
  public:
    using Clock = std::chrono::steady_clock;

    explicit Deadline(Clock::time_point moment) : moment_(moment) {}

    [[nodiscard]] bool has_passed() {
        const Clock::time_point now = Clock::now();
        const Clock::duration unasked = now - asked_;
        if (unasked > usual_at_most && moment_ < Clock::time_point::max() - unasked) moment_ += unasked;
        asked_ = now;
        return now >= moment_;
    }
    /// How long to sleep before it is asked again: to its moment, but no longer than half a second.
    [[nodiscard]] std::chrono::milliseconds until_asked() const {
        constexpr std::chrono::milliseconds longest{500};
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(moment_ - Clock::now());
        return std::clamp(left, std::chrono::milliseconds(0), longest);
    }

  private:
    static constexpr std::chrono::seconds usual_at_most{2};  ///< on a machine with far too much to do

    Clock::time_point moment_;
    Clock::time_point asked_ = Clock::now();
};

}  // namespace hone::runtime
