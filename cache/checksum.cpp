#include "cache/checksum.h"

#include <bit>
#include <cstring>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace hone::cache {
namespace {

void append_little_endian(std::string& out, std::uint64_t value) {
    static_assert(std::endian::native == std::endian::little);
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    out.append(bytes, sizeof bytes);
}

XXH128_canonical_t xxh3(const void* data, std::size_t size) {
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits(data, size));
    return canonical;
}

}  // namespace

Fingerprint& Fingerprint::text(std::string_view value) {
    append_little_endian(buffer_, value.size());
    buffer_.append(value);
    return *this;
}

Fingerprint& Fingerprint::integer(std::int64_t value) {
    append_little_endian(buffer_, static_cast<std::uint64_t>(value));
    return *this;
}

Fingerprint& Fingerprint::real(double value) {
    append_little_endian(buffer_, std::bit_cast<std::uint64_t>(value + 0.0));
    return *this;
}

Fingerprint& Fingerprint::bytes(std::span<const std::byte> value) {
    append_little_endian(buffer_, value.size());
    const XXH128_canonical_t digest = xxh3(value.data(), value.size());
    buffer_.append(reinterpret_cast<const char*>(digest.digest), sizeof digest.digest);
    return *this;
}

std::string Fingerprint::hex() const {
    static constexpr std::string_view digits = "0123456789abcdef";
    std::string out;
    for (const unsigned char byte : xxh3(buffer_.data(), buffer_.size()).digest) {
        out.push_back(digits[byte >> 4]);
        out.push_back(digits[byte & 15]);
    }
    return out;
}

}  // namespace hone::cache
