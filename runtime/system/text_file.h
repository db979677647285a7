// Text files from outside, read whole: regular files only, with a size limit.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace hone::runtime {

/// Throws InputError when the file is missing, cannot be looked at, or is no regular file: nothing that never
/// ends or never answers.
void require_regular_file(const std::filesystem::path& file);

/// Whether something has this name: also a link that leads nowhere, as half a download has them, and what
/// cannot be looked at. To read that is an error that says why; to pass over it would be to do without.
[[nodiscard]] bool has_entry(const std::filesystem::path& file);

/// Throws InputError when the file is missing, is no regular file, cannot be read, or is longer than
/// `max_bytes`.
[[nodiscard]] std::string read_text_file(const std::filesystem::path& file, std::size_t max_bytes);

}  // namespace hone::runtime
