// Writes files of tensors in the safetensors format (safetensors.h). A file appears under its name whole or
// not at all, also when the machine goes down meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tuner/checkpoint/safetensors.h"

namespace hone::tuner {

/// `bytes`: row-major, as many as type and shape need.
struct TensorToWrite {
    std::string name;
    StoredType type = StoredType::u8;
    std::vector<std::uint64_t> shape;
    std::span<const std::byte> bytes;
};

/// Names are sorted in the header; the bytes of wide types stand first, so that each tensor is aligned to its
/// type. Replaces a file that is there. Throws ConfigError, with nothing left behind: for a name that is
/// empty, twice or "__metadata__", for bytes that do not fit the shape, and when the file cannot be written.
void write_safetensors(const std::filesystem::path& file, std::vector<TensorToWrite> tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace hone::tuner
