// A folder that stands under another name (runtime/system/part.h) until it is whole, beside the one that it
// becomes. One thread.
#pragma once

#include <filesystem>
#include <string_view>

#include "runtime/system/file_descriptor.h"

namespace hone::checkpoints {

class OutputFolder {
  public:
    /// Makes a part of it, and removes those that writers have left which were killed. Throws CheckpointError
    /// when `folder` is there, InputError when its own folder is not, and WriteError, as the functions below
    /// do, when it cannot be made or written.
    explicit OutputFolder(const std::filesystem::path& folder);
    OutputFolder(const OutputFolder&) = delete;
    OutputFolder& operator=(const OutputFolder&) = delete;
    /// Removes it with everything in it unless it is published.
    ~OutputFolder();

    /// Where its files go until it is published.
    [[nodiscard]] const std::filesystem::path& path() const { return part_; }
    void write_text(std::string_view name, std::string_view text) const;
    /// Gives it its name, unless another has taken that meanwhile.
    void publish();

  private:
    void make_part();

    std::filesystem::path folder_;
    std::filesystem::path part_;
    runtime::UniqueFd lock_;
    bool published_ = false;
};

}  // namespace hone::checkpoints
