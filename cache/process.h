// Which process a row in flight belongs to, told apart from a later one with the same number. Internal to the
// cache.
#pragma once

#include <cstdint>
#include <string>

namespace hone::cache {

struct ProcessIdentity {
    std::string host;
    std::string boot;        ///< the kernel's random boot id
    std::int64_t start = 0;  ///< clock ticks after boot; 0 when the process does not exist
};
[[nodiscard]] ProcessIdentity identity_of_process(std::int64_t pid);
/// Its `host` alone, without a look at the process.
[[nodiscard]] std::string host_name();

/// Unix time in milliseconds.
[[nodiscard]] std::int64_t now_ms();

}  // namespace hone::cache
