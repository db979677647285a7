// The last words of the program where there is no memory left even for an error: fixed texts, written without
// an allocation. For the program only: a library must not decide how its process ends.
#pragma once

namespace hone::runtime {

/// The exit code of such an end, "failure" of docs/decisions/0006-exit-codes.md.
inline constexpr int out_of_memory_exit = 1;

/// Makes an allocation that fails where nobody can catch it (in a static object's making, or behind noexcept)
/// end the process with these words and this code, and not with SIGABRT. What was not caught for another
/// reason still aborts.
void end_in_words_without_memory() noexcept;

/// main() has begun: from now on an end without any exception is another fault.
void static_objects_are_made() noexcept;

/// Says it on stderr, or with `json` as the object that --json promises on stdout. Returns the exit code.
int say_out_of_memory(bool json) noexcept;

}  // namespace hone::runtime
