// The worker's side of main(). `hone --worker=compile` and its like are started by Hone alone, never by hand.
// A program that may be started as a worker asks is_worker() first of all.
#pragma once

#include <optional>
#include <string_view>

#include "runtime/workers/channel.h"

namespace hone::runtime {

inline constexpr std::string_view worker_argument = "--worker=";
inline constexpr std::string_view parent_argument = "--parent=";
inline constexpr int worker_socket_fd = 3;

/// What this process has been started for.
struct WorkerRole {
    std::string_view kind;  ///< "compile"; part of argv
    Channel channel;        ///< to the process that has started it
};

/// Whether main() is a worker's. Once it has been asked, can_be_worker() is true.
[[nodiscard]] bool is_worker(int argc, char** argv) noexcept;

/// Whether this program can be started as its own worker.
[[nodiscard]] bool can_be_worker() noexcept;

/// Makes this process a worker: it dies with the thread that has started it, leaves no core file, and holds
/// no descriptor but the standard ones and its socket. nullopt: the arguments are not a worker's, or the
/// parent is gone.
[[nodiscard]] std::optional<WorkerRole> settle_in(int argc, char** argv);

}  // namespace hone::runtime
