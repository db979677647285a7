#include "checkpoints/files/unfinished_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "checkpoints/error.h"

namespace hone::checkpoints {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& file, int error) {
    throw CheckpointError(
        fmt::format("{}: cannot be written: {}", file.string(), std::generic_category().message(error)));
}

}  // namespace

UnfinishedFile::UnfinishedFile(fs::path file)
    : file_(std::move(file)), temporary_(fmt::format("{}.part-{}", file_.string(), ::getpid())) {
    descriptor_ = runtime::UniqueFd(
        ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
    if (!descriptor_) fail(temporary_, errno);
}

UnfinishedFile::~UnfinishedFile() {
    if (!published_) ::unlink(temporary_.c_str());
}

void UnfinishedFile::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const ssize_t written =
            ::pwrite(descriptor_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) fail(file_, errno);
        bytes = bytes.subspan(static_cast<std::size_t>(written));
        offset += static_cast<std::uint64_t>(written);
    }
}

void UnfinishedFile::publish() {
    if (::fsync(descriptor_.get()) != 0) fail(file_, errno);
    if (::rename(temporary_.c_str(), file_.c_str()) != 0) fail(file_, errno);
    published_ = true;
    // Without this, a crash may bring the old file back, which is whole as well.
    sync_folder(file_.has_parent_path() ? file_.parent_path() : fs::path("."));
}

void sync_folder(const fs::path& folder) {
    const runtime::UniqueFd directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (directory) ::fsync(directory.get());
}

}  // namespace hone::checkpoints
