// A folder that stands under another name until it is whole, beside the one that it becomes. One thread.
#pragma once

#include <filesystem>
#include <string_view>

namespace hone::checkpoints {

class OutputFolder {
  public:
    /// Makes "`folder`.part-PID". Throws CheckpointError when `folder` is there, or the other cannot be made.
    explicit OutputFolder(const std::filesystem::path& folder);
    OutputFolder(const OutputFolder&) = delete;
    OutputFolder& operator=(const OutputFolder&) = delete;
    /// Removes it with everything in it unless it is published.
    ~OutputFolder();

    /// Where its files go until it is published.
    [[nodiscard]] const std::filesystem::path& path() const { return temporary_; }
    void write_text(std::string_view name, std::string_view text) const;
    /// Gives it its name. Throws CheckpointError where another has taken that meanwhile.
    void publish();

  private:
    std::filesystem::path folder_;
    std::filesystem::path temporary_;
    bool published_ = false;
};

}  // namespace hone::checkpoints
