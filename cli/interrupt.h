// Ctrl-C: the first one asks the command to stop in good order, the second ends the process at once.
#pragma once

#include <atomic>

namespace hone::cli {

/// From here on SIGINT and SIGTERM set the flag that is returned (once) or end the process with 130 (twice).
/// Without this call they end the process as usual. `answer`, a literal, is printed at the first one.
[[nodiscard]] const std::atomic<bool>& stop_on_interrupt(
    const char* answer = "stopping after this measurement; everything so far is saved (again: stop at once)");

}  // namespace hone::cli
