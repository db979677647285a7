// What is in a folder, without std::filesystem's iterators: those of libstdc++ allocate in a function that
// must not throw, and end the process where memory ends.
#pragma once

#include <filesystem>
#include <vector>

namespace hone::runtime {

/// Paths below `folder`, in no order; none where it cannot be read.
[[nodiscard]] std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder);

/// Removes a folder and the files in it, as far as that is possible. One that holds anything else stays as it
/// is.
void remove_folder_of_files(const std::filesystem::path& folder) noexcept;

}  // namespace hone::runtime
