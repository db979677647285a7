// Where an NVRTC library may be, in the order in which nvrtc.cpp tries them.
#pragma once

#include <string>
#include <vector>

#include "runtime/system/environment.h"

namespace hone::runtime {

/// Absolute paths and sonames. Only files that exist are listed, except for the sonames, the toolkits that
/// the environment names and /usr/local/cuda, whose absence the user wants to be told.
[[nodiscard]] std::vector<std::string> nvrtc_locations(const Environment& environment);

}  // namespace hone::runtime
