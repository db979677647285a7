// A regular file that is read at places, a checkpoint's: it may be larger than memory, so it is not read
// whole. It is read and not mapped: whoever shortens a mapped file kills those who look at it (SIGBUS).
// Reading keeps no state: const access from many threads is fine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "runtime/system/file_descriptor.h"

namespace hone::checkpoints {

class SourceFile {
  public:
    /// Throws CheckpointError with the file's name and why when it cannot be opened or is no regular file.
    explicit SourceFile(const std::filesystem::path& file);

    /// When it was opened.
    [[nodiscard]] std::uint64_t size_bytes() const { return size_bytes_; }
    /// Fills `out` from `offset` on. Throws CheckpointError, also for a file that has become shorter
    /// meanwhile.
    void read_at(std::uint64_t offset, std::span<std::byte> out) const;

  private:
    std::string name_;
    runtime::UniqueFd descriptor_;
    std::uint64_t size_bytes_ = 0;
};

}  // namespace hone::checkpoints
