// A regular file, read only, in memory. Nothing is read before it is touched. Whoever shortens the file while
// it is mapped makes the reads behind its new end fail with SIGBUS: checkpoints are replaced, not rewritten.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "runtime/system/unique_handle.h"

namespace hone::checkpoints {

class MappedFile {
  public:
    /// Throws CheckpointError with the file's name and why when it cannot be opened or is no regular file.
    [[nodiscard]] static MappedFile open(const std::filesystem::path& file);

    /// Stays where it is when the MappedFile is moved.
    [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

  private:
    struct MappingTraits {
        using Handle = void*;
        static constexpr Handle none = nullptr;
        std::size_t size_bytes = 0;
        void destroy(Handle address) const noexcept;
    };

    MappedFile() = default;

    runtime::UniqueHandle<MappingTraits> mapping_;
    std::span<const std::byte> bytes_;
};

}  // namespace hone::checkpoints
