// A file that stands under another name until it is whole. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "runtime/system/file_descriptor.h"

namespace hone::checkpoints {

class UnfinishedFile {
  public:
    /// Makes "`file`.part-PID", which must not be there. This and the functions below throw CheckpointError
    /// with the reason when the file cannot be written.
    explicit UnfinishedFile(std::filesystem::path file);
    UnfinishedFile(const UnfinishedFile&) = delete;
    UnfinishedFile& operator=(const UnfinishedFile&) = delete;
    /// Removes it unless it is published.
    ~UnfinishedFile();

    /// Anywhere, in any order.
    void write_at(std::uint64_t offset, std::span<const std::byte> bytes);
    /// Gives it its name, in place of a file that is there, once all of it has reached the disk.
    void publish();

  private:
    std::filesystem::path file_;
    std::filesystem::path temporary_;
    runtime::UniqueFd descriptor_;
    bool published_ = false;
};

/// The names in a folder reach the disk, as far as its file system can do that.
void sync_folder(const std::filesystem::path& folder);

}  // namespace hone::checkpoints
