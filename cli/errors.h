// From exceptions of all layers to the error that a user sees.
#pragma once

#include <exception>
#include <string>

#include "cli/command.h"

namespace hone::cli {

/// For a caught exception: exit code, a word for programs, message and hint.
[[nodiscard]] Outcome outcome_of(const std::exception_ptr& exception);

[[nodiscard]] Outcome usage_error(std::string code, std::string message, std::string hint);

}  // namespace hone::cli
