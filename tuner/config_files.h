// Lists the files that Hone was shipped with (paths.h says where), and reads files from outside: regular
// files only, with a size limit.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace hone::tuner {

/// Files of data_dir()/<folder>/ with this extension (".yaml"), sorted by name; empty when there are none.
[[nodiscard]] std::vector<std::filesystem::path> config_files(std::string_view folder,
                                                              std::string_view extension);

/// Throws ConfigError when the file is missing, is no regular file, cannot be read, or is longer than
/// `max_bytes`.
[[nodiscard]] std::string read_text_file(const std::filesystem::path& file, std::size_t max_bytes);

}  // namespace hone::tuner
