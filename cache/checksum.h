// XXH3-128 over a sequence of typed fields: what identities of trials and checksums of images are made of.
// Finds accidents; proves nothing about who wrote the data. Internal to the cache; docs/cache-format.md has
// the encoding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace hone::cache {

/// Fields are length-prefixed, so two different sequences never have the same bytes.
class Fingerprint {
  public:
    explicit Fingerprint(std::string_view domain) {
        buffer_.reserve(768);
        text(domain);
    }

    Fingerprint& text(std::string_view value);             ///< 64-bit length, then the bytes
    Fingerprint& integer(std::int64_t value);              ///< 64 bits, little-endian
    Fingerprint& real(double value);                       ///< binary64, little-endian; -0.0 as 0.0
    Fingerprint& bytes(std::span<const std::byte> value);  ///< 64-bit length, then their XXH3-128

    /// 32 lower-case hex digits.
    [[nodiscard]] std::string hex() const;

  private:
    std::string buffer_;
};

}  // namespace hone::cache
