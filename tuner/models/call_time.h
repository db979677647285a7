// How long one call takes, about, before anything is measured: for shares of work and orders of it.
#pragma once

#include <chrono>

#include "kernel_templates/problem.h"

namespace hone::tuner {

/// A call on a large GPU: what bytes and operations take at its speed, and a launch. Worked out in integers,
/// so that it is the same on every machine.
[[nodiscard]] std::chrono::nanoseconds call_time(const Problem& problem);

}  // namespace hone::tuner
