// Which program worker processes run: never one that PATH names. Thread-safe.
#pragma once

#include <filesystem>

namespace hone::runtime {

/// Of a program that calls is_worker(): HONE_WORKER_EXECUTABLE, or itself, also where that is "off": it does
/// not work without.
[[nodiscard]] std::filesystem::path own_worker_program();

/// Of a Runtime in whatever program: HONE_WORKER_EXECUTABLE, the program `hone` beside this library (in its
/// folder, or in bin/ of the same prefix), or this program where it can be a worker. Empty: there is none,
/// HONE_WORKER_EXECUTABLE is "off", or this process has more rights than who started it. One beside the
/// library has to be as trustworthy: it and its folder belong to root or to the library's owner, and are not
/// everybody's to write.
[[nodiscard]] std::filesystem::path dispatch_worker_program();

/// The second case alone, for a library at this place.
[[nodiscard]] std::filesystem::path program_beside(const std::filesystem::path& library);

}  // namespace hone::runtime
