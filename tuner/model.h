// From a model file's keys to the sizes that decide problems. Knows the spellings that model families use for
// one thing, what may be left out, and which values make sense. Hugging Face's names; docs/troubleshooting.md
// lists the spellings.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/model_document.h"
#include "tuner/workload.h"

namespace hone::tuner {

/// Throws ConfigError naming file, line and key for a missing key (with every accepted spelling), a value of
/// the wrong kind, out of 1 .. 2^24, or sizes that contradict each other.
[[nodiscard]] Model model_from(const ModelDocument& document, const std::string& name);

/// Largest size that any key may have.
inline constexpr std::int64_t max_model_size = std::int64_t{1} << 24;

}  // namespace hone::tuner
