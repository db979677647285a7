#include "cache/write_ahead_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>

namespace hone::cache {
namespace {

constexpr std::uint32_t magic = 0x377f0682;  // the lowest bit: checksums over big-endian words
constexpr std::size_t words = log_header_bytes / 4;

using Header = std::array<std::uint8_t, log_header_bytes>;

std::uint32_t word(const Header& header, std::size_t index, bool big_endian) {
    const std::uint8_t* bytes = &header[4 * index];
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < 4; ++i) value = value << 8 | bytes[big_endian ? i : 3 - i];
    return value;
}

/// "Database File Format", 4.2: over all words but the last two, which hold it.
bool checksum_is_right(const Header& header) {
    const bool big_endian = (word(header, 0, true) & 1) != 0;
    std::uint32_t first = 0;
    std::uint32_t second = 0;
    for (std::size_t i = 0; i < words - 2; i += 2) {
        first += word(header, i, big_endian) + second;
        second += word(header, i + 1, big_endian) + first;
    }
    return first == word(header, words - 2, true) && second == word(header, words - 1, true);
}

}  // namespace

bool has_log_header(const std::filesystem::path& log) {
    // SQLite holds no lock on a log, so that a descriptor of our own does no harm.
    const int descriptor = ::open(log.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (descriptor < 0) return false;
    Header header{};
    const bool whole = ::read(descriptor, header.data(), header.size()) == log_header_bytes;
    ::close(descriptor);
    return whole && (word(header, 0, true) & ~1U) == magic && checksum_is_right(header);
}

}  // namespace hone::cache
