// Random numbers of the operating system, for names and seeds.
#pragma once

#include <cstdint>

namespace hone::runtime {

/// Throws std::system_error where the system has none.
[[nodiscard]] std::uint64_t random_bits();

}  // namespace hone::runtime
