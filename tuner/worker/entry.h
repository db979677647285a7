// The worker's side of main(): `hone --worker=compile` and `hone --worker=measure` are started by the tuner,
// never by hand. Every program that tunes calls this first in main():
//   if (hone::tuner::is_worker(argc, argv)) return hone::tuner::worker_main(argc, argv);
#pragma once

#include <string_view>

#include "runtime/compile/compiler.h"

namespace hone::tuner {

inline constexpr std::string_view worker_argument = "--worker=";
inline constexpr std::string_view parent_argument = "--parent=";
inline constexpr int worker_socket_fd = 3;

/// What a compile worker calls for each request. Tests give another one, to compile planted kernels that no
/// catalog holds.
using CompileFunction = runtime::CompiledImage (*)(const runtime::Nvrtc&, const runtime::CompileRequest&);

[[nodiscard]] bool is_worker(int argc, char** argv);
/// Serves requests until the tuner closes the socket or dies. Returns the process's exit code.
int worker_main(int argc, char** argv, CompileFunction compile = &runtime::compile);

}  // namespace hone::tuner
