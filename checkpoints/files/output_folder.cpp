#include "checkpoints/files/output_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <sys/stat.h>

#include <cerrno>

#include "checkpoints/error.h"
#include "runtime/system/atomic_file.h"
#include "runtime/system/folder.h"
#include "runtime/system/part.h"
#include "runtime/system/write_error.h"

namespace hone::checkpoints {
namespace {

namespace fs = std::filesystem;

/// "out/" and "out" are the same folder, and the first has no name to stand beside.
fs::path without_slash(const fs::path& folder) {
    return folder.has_filename() ? folder : folder.parent_path();
}

[[noreturn]] void fail(const fs::path& folder, int error_number) {
    runtime::throw_write_error(folder, "cannot be made", error_number);
}

}  // namespace

OutputFolder::OutputFolder(const fs::path& folder) : folder_(without_slash(folder)) {
    if (folder_.empty())
        throw CheckpointError("'' is not the name of a folder; allowed: a name that is free");
    std::error_code error;
    if (fs::exists(fs::symlink_status(folder_, error)))
        throw CheckpointError(
            fmt::format("{}: is there already; allowed: a name that is free", folder_.string()));
    runtime::remove_abandoned_parts(folder_);
    make_part();
}

void OutputFolder::make_part() {
    constexpr int attempts = 16;  // each is lost only to a process that removes abandoned parts just then
    for (int i = 0; i < attempts; ++i) {
        part_ = runtime::part_name(folder_);
        if (::mkdir(part_.c_str(), 0777) != 0) {
            if (errno != EEXIST) fail(folder_, errno);
            continue;
        }
        runtime::open_to_owner(part_, S_IRWXU);
        lock_ = runtime::UniqueFd(::open(part_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
        if (lock_ && runtime::lock_part(lock_.get(), part_)) return;
        ::rmdir(part_.c_str());
    }
    fail(folder_, EBUSY);
}

OutputFolder::~OutputFolder() {
    if (!published_) runtime::remove_folder_of_files(part_);
}

void OutputFolder::write_text(std::string_view name, std::string_view text) const {
    runtime::write_file(part_ / name, text);
}

void OutputFolder::publish() {
    if (::renameat2(AT_FDCWD, part_.c_str(), AT_FDCWD, folder_.c_str(), RENAME_NOREPLACE) != 0 &&
        (errno != EINVAL || ::rename(part_.c_str(), folder_.c_str()) != 0)) {
        fail(folder_, errno);
    }
    published_ = true;
    runtime::sync_folder(runtime::folder_of(folder_));
}

}  // namespace hone::checkpoints
