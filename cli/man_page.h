// hone.1, made from the declared commands. Text only.
#pragma once

#include <string>

#include "cli/declarations.h"

namespace hone::cli {

/// In the man macros of roff.
[[nodiscard]] std::string man_page(const DeclaredCommand& program);

}  // namespace hone::cli
