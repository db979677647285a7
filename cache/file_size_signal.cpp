#include "cache/file_size_signal.h"

#include <ctime>

namespace hone::cache {
namespace {

sigset_t the_signal() noexcept {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGXFSZ);
    return set;
}

bool is_pending() noexcept {
    sigset_t pending;
    return ::sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1;
}

}  // namespace

// sigprocmask(), which changes the calling thread alone on Linux: pthread_sigmask() got a new version in
// glibc 2.32, and the library runs from 2.28 on.
FileSizeSignal::FileSizeSignal() noexcept : was_pending_(is_pending()) {
    const sigset_t set = the_signal();
    ::sigprocmask(SIG_BLOCK, &set, &before_);
}

FileSizeSignal::~FileSizeSignal() {
    const sigset_t set = the_signal();
    const timespec at_once{};
    if (!was_pending_ && is_pending()) ::sigtimedwait(&set, nullptr, &at_once);
    ::sigprocmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace hone::cache
