// What to tune as a live process has shown it: a capture's problems, in the order of the time that they take.
#pragma once

#include <filesystem>

#include "tuner/models/workload.h"

namespace hone::tuner {

/// The problems of a capture (runtime/dispatch/capture_file.h), of all its GPUs together, those first that
/// take the most time: calls times call_time(). Problems of families or fields that this build does not have
/// are left out with a warning. Throws InputError for what is no capture, ConfigError for one without a call.
[[nodiscard]] Workload captured_workload(const std::filesystem::path& file);

}  // namespace hone::tuner
