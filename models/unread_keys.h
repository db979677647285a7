// Which keys of a model file say nothing about its operators, and what is told of all others that were not
// read.
#pragma once

#include <string>
#include <vector>

#include "models/keys.h"

namespace hone::models {

/// Names of keys that were not read and may change the model: all but those known to be about training,
/// generation, tokens, labels or files.
[[nodiscard]] std::vector<std::string> doubtful_keys(const Keys& keys);

/// A sentence with their names, or nothing.
[[nodiscard]] std::vector<std::string> unread_warnings(const Keys& keys);

}  // namespace hone::models
