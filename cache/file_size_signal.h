// SIGXFSZ, which the system sends to who writes behind the limit of `ulimit -f`, and which ends a process
// that has not heard of it. For what an engine does by the way: a cache or a capture that may not grow on is
// an accident like a full disk, and never the end of its process. Changes the calling thread alone.
#pragma once

#include <signal.h>

namespace hone::cache {

/// While one stands, such a write of this thread is an error (EFBIG) and nothing else. May be nested.
/// Destroyed by the thread that made it.
class FileSizeSignal {
  public:
    FileSizeSignal() noexcept;
    FileSizeSignal(const FileSizeSignal&) = delete;
    FileSizeSignal& operator=(const FileSizeSignal&) = delete;
    ~FileSizeSignal();

  private:
    sigset_t before_;
    bool was_pending_;
};

}  // namespace hone::cache
