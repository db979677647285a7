// What the hone program is as a worker: `--worker=compile` or `--worker=measure`. Every program that tunes
// calls this first in main():
//   if (hone::runtime::is_worker(argc, argv)) return hone::tuner::worker_main(argc, argv);
#pragma once

#include <string_view>

#include "runtime/compile/compile_worker.h"
#include "runtime/workers/entry.h"

namespace hone::tuner {

inline constexpr std::string_view measure_kind = "measure";

/// Serves requests until the parent closes the socket or dies. Returns the process's exit code. Tests give
/// another `compile`, for planted kernels that no catalog holds.
int worker_main(int argc, char** argv, runtime::CompileFunction compile = &runtime::compile);

}  // namespace hone::tuner
