// One worker process: an exec'ed copy of this program in a process group of its own, joined by a Channel.
// Killable at any moment; never outlives its parent. Used by one thread, which must be the one that started
// it.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "tuner/worker/channel.h"

namespace hone::tuner {

inline constexpr std::string_view compile_kind = "compile";
inline constexpr std::string_view measure_kind = "measure";

class WorkerProcess {
  public:
    /// `kind` becomes the hidden argument --worker=KIND. Throws WorkerError when the program cannot be
    /// started.
    [[nodiscard]] static WorkerProcess start(std::string_view kind);
    WorkerProcess(WorkerProcess&&) noexcept;
    WorkerProcess& operator=(WorkerProcess&&) noexcept;
    ~WorkerProcess();

    [[nodiscard]] Channel& channel() { return channel_; }
    [[nodiscard]] pid_t pid() const { return pid_; }

    /// SIGKILL to the whole group, then waits until it is gone. Returns how it ended: "exit code 3", "signal
    /// 9 (Killed)".
    std::string kill();

  private:
    /// The same without words, which take memory: the status of waitpid(), or nothing where it does not end.
    std::optional<int> end() noexcept;

    WorkerProcess(pid_t pid, Channel channel);

    pid_t pid_ = -1;
    Channel channel_;
};

/// This program, or HONE_WORKER_EXECUTABLE.
[[nodiscard]] std::filesystem::path worker_executable();

}  // namespace hone::tuner
