#include "cli/interrupt.h"

#include <unistd.h>

#include <csignal>
#include <cstring>

namespace hone::cli {
namespace {

// A signal handler reaches nothing but static storage.
std::atomic<bool> stop_wanted{false};
std::atomic<const char*> answer_text{""};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<const char*>::is_always_lock_free);

void print(const char* text) {
    [[maybe_unused]] const auto ignored = write(STDERR_FILENO, text, std::strlen(text));
}

extern "C" void on_interrupt(int) {
    constexpr int interrupted = 130;
    if (stop_wanted.exchange(true)) _exit(interrupted);
    print("\n");
    print(answer_text);
    print("\n");
}

}  // namespace

const std::atomic<bool>& stop_on_interrupt(const char* answer) {
    answer_text = answer;
    struct sigaction action {};
    action.sa_handler = on_interrupt;
    action.sa_flags = SA_RESTART;
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
    struct sigaction was {};
    if (sigaction(SIGHUP, nullptr, &was) == 0 && was.sa_handler != SIG_IGN)  // as nohup starts a command
        sigaction(SIGHUP, &action, nullptr);
    return stop_wanted;
}

}  // namespace hone::cli
