// Structs that grow at their end: a caller's may be older or newer than this library's. Internal to the C
// interface.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace hone::c_api {

constexpr std::size_t longest_struct = 4096;  ///< a number beyond is no size but garbage

/// Copies a caller's struct over `known`, which holds the defaults of fields that an older caller does not
/// have. False when it is shorter than `smallest` bytes, the size of the struct's first release, or when a
/// newer caller has set a field that this library does not know.
template <class Struct>
bool read_struct(const Struct& given, Struct& known, std::size_t smallest = sizeof(Struct)) noexcept {
    static_assert(std::is_trivially_copyable_v<Struct> && offsetof(Struct, struct_size) == 0);
    const std::size_t size = given.struct_size;
    if (size < smallest || size > longest_struct) return false;
    const auto* bytes = reinterpret_cast<const unsigned char*>(&given);
    const auto is_zero = [](unsigned char byte) { return byte == 0; };
    if (size > sizeof(Struct) && !std::all_of(bytes + sizeof(Struct), bytes + size, is_zero)) return false;
    std::memcpy(&known, &given, std::min(size, sizeof(Struct)));
    known.struct_size = sizeof(Struct);
    return true;
}

/// Writes the defaults into a caller's struct of `size` bytes; what only later libraries know is 0. False for
/// what read_struct() refuses, too; then nothing is written.
template <class Struct>
bool write_defaults(Struct& out, std::size_t size, const Struct& defaults,
                    std::size_t smallest = sizeof(Struct)) noexcept {
    if (size < smallest || size > longest_struct) return false;
    std::memset(static_cast<void*>(&out), 0, size);
    std::memcpy(&out, &defaults, std::min(size, sizeof(Struct)));
    out.struct_size = static_cast<std::uint32_t>(size);
    return true;
}

}  // namespace hone::c_api
