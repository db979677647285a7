// Ctrl-C, and what else asks a command to end: the first signal asks it to stop in good order, the second
// ends the process at once.
#pragma once

#include <atomic>

namespace hone::cli {

/// From here on SIGINT, SIGTERM and SIGHUP (a terminal that was closed, unless nohup has it ignored) set the
/// flag that is returned (once) or end the process with 130 (twice). Without this call they end the process
/// as usual. `answer`, a literal, is printed at the first one.
[[nodiscard]] const std::atomic<bool>& stop_on_interrupt(
    const char* answer = "stopping after this measurement; everything so far is saved (again: stop at once)");

}  // namespace hone::cli
