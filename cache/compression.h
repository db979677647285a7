// Bytes in the LZ4 block format (github.com/lz4/lz4, doc/lz4_Block_format.md), which any LZ4 library reads.
// Own code, since libhone brings no library along: Debian's static ones do not fit into a shared library.
// Made for compiled images of some ten kilobytes. Internal to the cache.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace hone::cache {

/// Never longer than 16 bytes more than 256 / 255 of the input.
[[nodiscard]] std::vector<std::byte> compress(std::span<const std::byte> bytes);

/// What `length` bytes were compressed to; nothing when it is no block of this length. Safe for any input.
[[nodiscard]] std::optional<std::vector<std::byte>> decompress(std::span<const std::byte> block,
                                                               std::size_t length);

}  // namespace hone::cache
