#include "tuner/cli/interrupt.h"

#include <unistd.h>

#include <csignal>

namespace hone::cli {
namespace {

// A signal handler reaches nothing but static storage.
std::atomic<bool> stop_wanted{false};
static_assert(std::atomic<bool>::is_always_lock_free);

extern "C" void on_interrupt(int) {
    constexpr int interrupted = 130;
    if (stop_wanted.exchange(true)) _exit(interrupted);
    constexpr char message[] =
        "\nstopping after this measurement; everything so far is saved (again: stop at once)\n";
    [[maybe_unused]] const auto ignored = write(STDERR_FILENO, message, sizeof(message) - 1);
}

}  // namespace

const std::atomic<bool>& stop_on_interrupt() {
    struct sigaction action {};
    action.sa_handler = on_interrupt;
    action.sa_flags = SA_RESTART;
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
    return stop_wanted;
}

}  // namespace hone::cli
