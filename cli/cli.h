// The program's front: reads the command line, runs one command, prints its outcome, and turns whatever went
// wrong into one message with a hint and an exit code.
#pragma once

namespace hone::cli {

/// Returns the exit code. Never throws.
[[nodiscard]] int run(int argc, char** argv);

}  // namespace hone::cli
