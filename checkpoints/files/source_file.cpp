#include "checkpoints/files/source_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "checkpoints/error.h"

namespace hone::checkpoints {
namespace {

[[noreturn]] void fail(const std::string& file, int error) {
    throw CheckpointError(
        fmt::format("{}: cannot be read: {}", file, std::generic_category().message(error)));
}

}  // namespace

SourceFile::SourceFile(const std::filesystem::path& file) : name_(file.string()) {
    // O_NONBLOCK: opening a pipe would wait for its writer.
    descriptor_ = runtime::UniqueFd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!descriptor_) fail(name_, errno);
    struct stat status {};
    if (::fstat(descriptor_.get(), &status) != 0) fail(name_, errno);
    if (!S_ISREG(status.st_mode)) throw CheckpointError(fmt::format("{}: not a regular file", name_));
    size_bytes_ = static_cast<std::uint64_t>(status.st_size);
}

void SourceFile::read_at(std::uint64_t offset, std::span<std::byte> out) const {
    while (!out.empty()) {
        const ssize_t got = ::pread(descriptor_.get(), out.data(), out.size(), static_cast<off_t>(offset));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) fail(name_, errno);
        if (got == 0) {
            throw CheckpointError(
                fmt::format("{}: ends at byte {}; it had {} when it was opened, and has to stay as it is "
                            "while it is read",
                            name_, offset, size_bytes_));
        }
        out = out.subspan(static_cast<std::size_t>(got));
        offset += static_cast<std::uint64_t>(got);
    }
}

}  // namespace hone::checkpoints
