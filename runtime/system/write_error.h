// What is thrown when the operating system does not write: a full disk, missing rights, a broken pipe.
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>

namespace hone::runtime {

/// A file that cannot be written though its name makes sense. `what()` names the file and the system's
/// reason.
class WriteError : public std::runtime_error {
  public:
    /// `error_number` is an errno value; `doing` as in "cannot be written".
    WriteError(const std::filesystem::path& file, std::string_view doing, int error_number);

    /// No room is left on the file system or in the user's quota.
    [[nodiscard]] bool disk_full() const { return disk_full_; }
    /// What to do.
    [[nodiscard]] std::string hint() const;

  private:
    bool disk_full_;
    bool too_large_;  // the process's limit of a file, or the file system's
};

/// Throws InputError for a name that cannot be (a folder that is not there, too long), else WriteError.
[[noreturn]] void throw_write_error(const std::filesystem::path& file, std::string_view doing,
                                    int error_number);

}  // namespace hone::runtime
