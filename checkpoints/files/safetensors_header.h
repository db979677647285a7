// The JSON header of a safetensors file as a table. Knows the header alone, not the bytes behind it. Internal
// to safetensors.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoints/files/safetensors.h"

namespace hone::checkpoints {

struct HeaderEntry {
    StoredType type = StoredType::u8;
    std::vector<std::uint64_t> shape;
    std::uint64_t begin = 0;  ///< offset from the first byte behind the header
    std::uint64_t end = 0;
};

struct SafetensorsHeader {
    std::map<std::string, HeaderEntry, std::less<>> entries;
    std::map<std::string, std::string, std::less<>> metadata;
};

inline constexpr std::string_view metadata_key = "__metadata__";

/// Reads while parsing, so that no tree of the JSON is ever built. Throws CheckpointError.
[[nodiscard]] SafetensorsHeader parse_header(std::string_view json, const std::string& file_name);

}  // namespace hone::checkpoints
