// One compiler in a process of its own: a request in, an image or an error out. The tuner's CompilePool and
// the dispatcher's CompileCrew have some each. Used by one thread, from the first compile() to stop().
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

#include "runtime/compile/compiler.h"
#include "runtime/workers/process.h"

namespace hone::runtime {

struct CompilerProcessOptions {
    std::filesystem::path program;                 ///< that serves compiles; see workers/program.h
    std::string nvrtc_library{};                   ///< a file that the process opens; empty: what it finds
    std::string nvrtc_version{};                   ///< "13.0", another one is refused; empty: any
    std::chrono::milliseconds time_limit{60'000};  ///< for one image
    bool in_background = false;  ///< other processes come first where there are too few cores for all
};

/// Says nothing about what was to be compiled: the process could not be started, was killed from outside (by
/// the system, for memory, say), had no core for half of the time that it may take, or is of another version.
class CompilerAccident : public WorkerError {
  public:
    using WorkerError::WorkerError;
};

class CompilerProcess {
  public:
    explicit CompilerProcess(CompilerProcessOptions options) : options_(std::move(options)) {}

    /// Starts the process where none runs. `cancel_fd` (or -1) ends the wait when it becomes readable. Throws
    /// NvrtcError as compile() does; WorkerError where the process takes too long or crashes,
    /// CompilerAccident for what is not the source's fault. That process is gone then, and the next request
    /// starts another.
    [[nodiscard]] CompiledImage compile(const CompileRequest& request, int cancel_fd = -1);
    /// Ends the process, if one runs.
    void stop() noexcept { process_.reset(); }

  private:
    void start(const std::string& setting);
    Message ask(const CompileRequest& request, int cancel_fd);
    [[noreturn]] void end(const std::string& cause);
    [[noreturn]] void end_dead();
    [[noreturn]] void end_slow(std::chrono::nanoseconds cpu_before);

    CompilerProcessOptions options_;
    std::optional<WorkerProcess> process_;
};

}  // namespace hone::runtime
