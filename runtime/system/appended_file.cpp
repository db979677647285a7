#include "runtime/system/appended_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>

#include "runtime/system/atomic_file.h"
#include "runtime/system/part.h"
#include "runtime/system/write_error.h"

namespace hone::runtime {
namespace {

namespace fs = std::filesystem;

off_t size_of(int fd, const fs::path& file) {
    struct stat status {};
    if (::fstat(fd, &status) != 0) throw_write_error(file, "cannot be looked at", errno);
    return status.st_size;
}

/// Bytes up to the end of the last whole line.
off_t whole_lines(int fd, const fs::path& file) {
    std::array<char, 4096> block{};
    for (off_t end = size_of(fd, file); end > 0;) {
        const off_t begin = std::max<off_t>(0, end - static_cast<off_t>(block.size()));
        const ssize_t got = ::pread(fd, block.data(), static_cast<std::size_t>(end - begin), begin);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) throw_write_error(file, "cannot be read", got < 0 ? errno : EIO);
        const std::string_view text(block.data(), static_cast<std::size_t>(got));
        const std::size_t newline = text.rfind('\n');
        if (newline != std::string_view::npos) return begin + static_cast<off_t>(newline) + 1;
        end = begin;
    }
    return 0;
}

/// Holds a file while a line is added to it. Where a file system has no locks, O_APPEND has to do.
class Turn {
  public:
    explicit Turn(int fd) noexcept : fd_(fd) {
        while (::flock(fd_, LOCK_EX) != 0 && errno == EINTR) {
        }
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn() { ::flock(fd_, LOCK_UN); }

  private:
    int fd_;
};

void add_line(int fd, std::string_view line, const fs::path& file) {
    const off_t before = size_of(fd, file);
    std::string text(line);
    text.push_back('\n');
    try {
        write_all(fd, std::as_bytes(std::span(text)), file);
    } catch (const WriteError&) {
        // Where even this fails, the next writer drops the line.
        [[maybe_unused]] const int ignored = ::ftruncate(fd, before);
        throw;
    }
}

}  // namespace

AppendedFile::AppendedFile(fs::path file, std::string_view first_line) : file_(std::move(file)) {
    require_replaceable(file_);
    const int how = O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    descriptor_ = UniqueFd(::open(file_.c_str(), how, 0666));
    if (!descriptor_) throw_write_error(file_, "cannot be written", errno);
    open_to_owner(descriptor_.get(), S_IRUSR | S_IWUSR);
    const Turn turn(descriptor_.get());
    const off_t whole = whole_lines(descriptor_.get(), file_);
    if (whole != size_of(descriptor_.get(), file_) && ::ftruncate(descriptor_.get(), whole) != 0)
        throw_write_error(file_, "cannot be written", errno);
    if (whole == 0) add_line(descriptor_.get(), first_line, file_);
}

void AppendedFile::append_line(std::string_view line) {
    const Turn turn(descriptor_.get());
    add_line(descriptor_.get(), line, file_);
}

}  // namespace hone::runtime
