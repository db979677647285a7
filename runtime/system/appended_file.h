// A text file that grows by lines and keeps what it has: recordings. Unlike AtomicFile its old content stays.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "runtime/system/file_descriptor.h"

namespace hone::runtime {

class AppendedFile {
  public:
    /// Opens a regular file, follows no link, and drops a last line without an end, which a writer that was
    /// killed has left. A file that is not there or has no line gets `first_line`. Throws InputError and
    /// WriteError as AtomicFile does.
    AppendedFile(std::filesystem::path file, std::string_view first_line);

    /// Adds a line, whole or not at all, also when others add theirs. Throws WriteError.
    void append_line(std::string_view line);

  private:
    std::filesystem::path file_;
    UniqueFd descriptor_;
};

}  // namespace hone::runtime
