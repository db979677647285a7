// Work in pieces on several threads.
#pragma once

#include <cstdint>
#include <functional>

namespace hone::runtime {

/// Calls body(0) to body(count - 1), each once, on up to `threads` threads (0: as many as the machine has),
/// the caller's among them. When bodies throw, no further ones begin, and the exception of the lowest piece
/// leaves here, whatever the number of threads.
void for_each_piece(std::int64_t count, int threads, const std::function<void(std::int64_t)>& body);

}  // namespace hone::runtime
