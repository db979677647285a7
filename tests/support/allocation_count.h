// Calls of operator new, counted per thread: a test program that links hone_test_allocations has its global
// operator new replaced.
#pragma once

#include <cstdint>

namespace hone::test {

/// Calls of operator new on the calling thread so far.
[[nodiscard]] std::uint64_t allocation_count() noexcept;

}  // namespace hone::test
