// What is wrong with arguments of hone/quantize.h, in words.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

#include "hone/quantize.h"

namespace hone::runtime {

[[noreturn]] inline void refuse(const char* where, const std::string& what, const std::string& hint) {
    throw Error(what, where, hint, ErrorKind::bad_argument);
}

inline void check_size(const char* where, const char* name, std::size_t size, std::int64_t wanted,
                       const char* unit) {
    if (size == static_cast<std::size_t>(wanted)) return;
    refuse(where, fmt::format("{} has {} {}; allowed: {}", name, size, unit, wanted),
           "docs/formats.md says how large each part of a stored weight is");
}

/// Checks the sizes of a stored weight's parts, in bytes.
inline void check_stored(const char* where, const PackedShape& shape, std::size_t codes, std::size_t scales,
                         std::size_t zeros) {
    check_size(where, "codes", codes, packed_bytes(shape.format, shape.out, shape.in), "bytes");
    check_size(where, "scales", scales, scale_bytes(shape), "bytes");
    check_size(where, "zeros", zeros, zero_count(shape), "bytes");
}

/// Codes and zero points of 4 bits, `columns` a row; names the first that is none.
inline void check_nibbles(const char* where, const char* name, std::span<const std::uint8_t> numbers,
                          std::int64_t columns, const char* hint) {
    const auto wrong = std::ranges::find_if(numbers, [](std::uint8_t number) { return number > 15; });
    if (wrong == numbers.end()) return;
    const auto at = static_cast<std::int64_t>(wrong - numbers.begin());
    refuse(where,
           fmt::format("{} [{}, {}] is {}; allowed: 0 to 15", name, at / columns, at % columns, *wrong),
           hint);
}

}  // namespace hone::runtime
