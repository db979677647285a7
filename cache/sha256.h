// SHA-256 (FIPS 180-4), for the checksum of bundles and, when Hone is built, for what names templates. Small
// rather than fast: a bundle has at most 16 MiB.
#pragma once

#include <string>
#include <string_view>

namespace hone::cache {

/// 64 lower-case hex digits.
[[nodiscard]] std::string sha256_hex(std::string_view data);

}  // namespace hone::cache
