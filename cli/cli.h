// The program's front: reads the command line, runs one command, prints its outcome, and turns whatever went
// wrong into one message with a hint and an exit code.
#pragma once

#include <string>

#include "cli/command.h"

namespace hone::cli {

/// Returns the exit code. Never throws.
[[nodiscard]] int run(int argc, char** argv);

/// Prints what came of a command; returns the exit code. For who cannot return to run() any more.
[[nodiscard]] int present(const std::string& command, Outcome given, const Console& console);

}  // namespace hone::cli
