// A file that many processes read, change and replace: one after the other.
#pragma once

#include <chrono>
#include <filesystem>

#include "runtime/system/file_descriptor.h"

namespace hone::runtime {

/// Keeps others of this class from the file of this name, though its holder may put another one in its place
/// (atomic_file.h). Ends with the object, or with the process.
class FileLock {
  public:
    /// Makes an empty file where there is none. Throws InputError for what must not be replaced, WriteError
    /// when the file cannot be opened, or is held by another process for longer than `patience`. File systems
    /// without locks (flock) are taken as they are.
    FileLock(const std::filesystem::path& file, std::chrono::milliseconds patience);

  private:
    UniqueFd descriptor_;
};

}  // namespace hone::runtime
