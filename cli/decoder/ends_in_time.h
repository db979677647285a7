// Ends the process where a command that was asked to stop does not: a GPU that hangs keeps its threads in
// calls of the driver that never return, and what waits for them never ends either.
#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "cli/console.h"

namespace hone::cli {

class EndsInTime {
  public:
    /// Once `stop` is set, all that lives shorter than this has so long to end. Where no thread can be
    /// started it may take as long as it likes.
    EndsInTime(std::string command, const std::atomic<bool>& stop, std::chrono::milliseconds limit,
               const Console& console);
    EndsInTime(const EndsInTime&) = delete;
    EndsInTime& operator=(const EndsInTime&) = delete;
    ~EndsInTime() { has_ended_ = true; }

  private:
    void watch(const std::string& command, const std::atomic<bool>& stop, std::chrono::milliseconds limit,
               const Console& console) const;

    std::atomic<bool> has_ended_{false};
    std::jthread thread_;  ///< the last: ends first
};

}  // namespace hone::cli
