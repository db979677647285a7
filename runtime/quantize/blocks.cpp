#include "runtime/quantize/blocks.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace hone::runtime {
namespace {

namespace places = quantized_linear;

constexpr std::int64_t block_bytes_w4 = places::packed_bytes(1, 1, 4);
constexpr std::int64_t block_bytes_w8 = places::packed_bytes(1, 1, 8);
constexpr int side = places::block_columns;
constexpr int elements = side * side;

/// The codes of a block row by row, one a byte.
using Block = std::uint8_t[elements];

/// For each byte of a block, the elements whose codes it holds; elements count row by row.
struct W4Sources {
    std::array<std::uint16_t, block_bytes_w4> low{};
    std::array<std::uint16_t, block_bytes_w4> high{};
};
constexpr W4Sources w4_sources() {
    W4Sources sources;
    for (int element = 0; element < elements; ++element) {
        const places::CodePlace place = places::place_w4(element / side, element % side, side);
        auto& nibbles = place.bit == 0 ? sources.low : sources.high;
        nibbles[static_cast<std::size_t>(place.byte)] = static_cast<std::uint16_t>(element);
    }
    return sources;
}
constexpr std::array<std::uint16_t, block_bytes_w8> w8_sources() {
    std::array<std::uint16_t, block_bytes_w8> sources{};
    for (int element = 0; element < elements; ++element) {
        const places::CodePlace place = places::place_w8(element / side, element % side, side);
        sources[static_cast<std::size_t>(place.byte)] = static_cast<std::uint16_t>(element);
    }
    return sources;
}
constexpr W4Sources w4 = w4_sources();
constexpr std::array<std::uint16_t, block_bytes_w8> w8 = w8_sources();

void pack_block_w4(const Block& codes, std::uint8_t* packed) {
    for (std::size_t byte = 0; byte < w4.low.size(); ++byte)
        packed[byte] = static_cast<std::uint8_t>(codes[w4.low[byte]] | codes[w4.high[byte]] << 4);
}

void unpack_block_w4(const std::uint8_t* packed, Block& codes) {
    for (std::size_t byte = 0; byte < w4.low.size(); ++byte) {
        codes[w4.low[byte]] = packed[byte] & 15U;
        codes[w4.high[byte]] = packed[byte] >> 4;
    }
}

void pack_block_w8(const Block& codes, std::uint8_t* packed) {
    for (std::size_t byte = 0; byte < w8.size(); ++byte) packed[byte] = codes[w8[byte]];
}

void unpack_block_w8(const std::uint8_t* packed, Block& codes) {
    for (std::size_t byte = 0; byte < w8.size(); ++byte) codes[w8[byte]] = packed[byte];
}

/// The columns from 64 * `block` on, with the padding around what exists.
void cut_block(const std::uint8_t* codes, std::int64_t rows, std::int64_t in, std::int64_t block,
               const std::uint8_t* padding, Block& cut) {
    const std::int64_t first = block * side;
    const std::int64_t columns = std::min<std::int64_t>(side, in - first);
    for (std::int64_t row = 0; row < side; ++row) {
        std::uint8_t* const to = cut + row * side;
        const std::int64_t there = row < rows ? columns : 0;
        if (there > 0) std::memcpy(to, codes + row * in + first, static_cast<std::size_t>(there));
        std::fill(to + there, to + side, padding[row]);
    }
}

/// Its inverse, without the padding.
void paste_block(const Block& cut, std::int64_t rows, std::int64_t in, std::int64_t block,
                 std::uint8_t* codes) {
    const std::int64_t first = block * side;
    const auto columns = static_cast<std::size_t>(std::min<std::int64_t>(side, in - first));
    for (std::int64_t row = 0; row < std::min<std::int64_t>(side, rows); ++row)
        std::memcpy(codes + row * in + first, cut + row * side, columns);
}

}  // namespace

void pack_rows(const std::uint8_t* codes, std::int64_t rows, std::int64_t in, int bits,
               const std::uint8_t* padding, std::uint8_t* packed) {
    for (std::int64_t block = 0; block < places::whole_blocks(in); ++block) {
        Block cut;
        cut_block(codes, rows, in, block, padding, cut);
        bits == 4 ? pack_block_w4(cut, packed + block * block_bytes_w4)
                  : pack_block_w8(cut, packed + block * block_bytes_w8);
    }
}

void unpack_rows(const std::uint8_t* packed, std::int64_t rows, std::int64_t in, int bits,
                 std::uint8_t* codes) {
    for (std::int64_t block = 0; block < places::whole_blocks(in); ++block) {
        Block cut;
        bits == 4 ? unpack_block_w4(packed + block * block_bytes_w4, cut)
                  : unpack_block_w8(packed + block * block_bytes_w8, cut);
        paste_block(cut, rows, in, block, codes);
    }
}

}  // namespace hone::runtime
