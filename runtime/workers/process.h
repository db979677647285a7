// One worker process: a program in a process group of its own, joined by a Channel. Killable at any moment;
// never outlives its parent. Starting one copies nothing of this process (posix_spawn), and whoever else
// waits for children here, or ignores SIGCHLD, does no harm. Used by one thread, which must be the one that
// started it: the worker dies with that thread.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/workers/channel.h"

namespace hone::runtime {

inline constexpr std::string_view compile_kind = "compile";

/// A worker process cannot be started, or does not do what it is there for. `what()` says which and why.
class WorkerError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// How a worker ended; neither number where nobody knows.
struct WorkerEnding {
    std::optional<int> exit_code{};  ///< it ended by itself
    std::optional<int> signal{};     ///< it was killed, or crashed

    /// "exit code 3", "signal 9 (Killed)", "an unknown end".
    [[nodiscard]] std::string text() const;
};

class WorkerProcess {
  public:
    /// Starts `program --worker=KIND`; `program` is an absolute path. It gets this process's environment,
    /// with the variable that `setting` says, "NAME=VALUE", unless that is empty. Throws WorkerError when the
    /// program cannot be started.
    [[nodiscard]] static WorkerProcess start(const std::filesystem::path& program, std::string_view kind,
                                             const std::string& setting = {});
    WorkerProcess(WorkerProcess&&) noexcept;
    WorkerProcess& operator=(WorkerProcess&&) noexcept;
    /// Kills it, and waits until it is gone.
    ~WorkerProcess();

    [[nodiscard]] Channel& channel() { return channel_; }
    [[nodiscard]] pid_t pid() const { return pid_; }

    /// Kills it and does not wait, so that several end side by side. Its destructor waits.
    void begin_to_kill() noexcept;
    /// Kills one that has failed, and waits until it is gone: it may be on its way out, so it gets some
    /// milliseconds to end by itself.
    WorkerEnding kill();

  private:
    WorkerProcess(pid_t pid, Channel channel);
    /// The status of waitpid(); nothing where it does not end, or somebody else has waited for it.
    std::optional<int> end() noexcept;

    pid_t pid_ = -1;
    Channel channel_;
};

}  // namespace hone::runtime
