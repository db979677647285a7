// Ctrl-C: the first one asks the command to save and stop, the second ends the process at once.
#pragma once

#include <atomic>

namespace hone::cli {

/// From here on SIGINT and SIGTERM set the flag that is returned (once) or end the process with 130 (twice).
/// Without this call they end the process as usual.
[[nodiscard]] const std::atomic<bool>& stop_on_interrupt();

}  // namespace hone::cli
