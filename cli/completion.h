// Completion scripts of shells, made from the declared commands. Text only.
#pragma once

#include <string>

#include "cli/declarations.h"

namespace hone::cli {

[[nodiscard]] std::string bash_completion(const DeclaredCommand& program);
[[nodiscard]] std::string zsh_completion(const DeclaredCommand& program);
[[nodiscard]] std::string fish_completion(const DeclaredCommand& program);

}  // namespace hone::cli
