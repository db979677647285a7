#include "runtime/system/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <iterator>

#include "runtime/system/input_error.h"
#include "runtime/system/part.h"
#include "runtime/system/write_error.h"

namespace hone::runtime {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& file, int error_number) {
    throw_write_error(file, "cannot be written", error_number);
}

std::string_view kind_of(mode_t mode) {
    if (S_ISLNK(mode)) return "a symbolic link";
    if (S_ISDIR(mode)) return "a folder";
    if (S_ISBLK(mode) || S_ISCHR(mode)) return "a device";
    return S_ISFIFO(mode) ? "a pipe" : "no regular file";
}

bool is_database(const fs::path& file) {
    constexpr std::string_view magic = "SQLite format 3";
    std::array<char, magic.size()> begin{};
    const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
    return fd && ::read(fd.get(), begin.data(), begin.size()) == std::ssize(begin) &&
           std::string_view(begin.data(), begin.size()) == magic;
}

/// A database, or what SQLite keeps beside one and takes for its own whatever is in it.
bool is_of_database(const fs::path& file) {
    const std::string name = file.string();
    for (const std::string_view suffix : {"", "-wal", "-shm", "-journal"}) {
        if (name.ends_with(suffix) && is_database(name.substr(0, name.size() - suffix.size()))) return true;
    }
    return false;
}

UniqueFd open_to_write(const fs::path& file) {
    int fd = -1;
    do {
        fd = ::open(file.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC);
    } while (fd < 0 && errno == EINTR);  // while a pipe waits for its reader
    if (fd < 0) fail(file, errno);
    return UniqueFd(fd);
}

/// What is written to as it comes: a device, a pipe, or what this process prints to already. None for a file.
UniqueFd open_stream(const fs::path& file) {
    struct stat target {};
    struct stat named {};
    if (::stat(file.c_str(), &target) != 0 || ::lstat(file.c_str(), &named) != 0) return {};
    for (const int printed_to : {STDOUT_FILENO, STDERR_FILENO}) {
        struct stat open {};
        if (!S_ISLNK(named.st_mode) || ::fstat(printed_to, &open) != 0) continue;
        if (open.st_dev != target.st_dev || open.st_ino != target.st_ino) continue;
        return UniqueFd(::fcntl(printed_to, F_DUPFD_CLOEXEC, 0));
    }
    if (!S_ISCHR(target.st_mode) && !S_ISFIFO(target.st_mode)) return {};
    return open_to_write(file);
}

}  // namespace

void require_replaceable(const fs::path& file) {
    if (!file.has_filename() || file.filename() == "." || file.filename() == "..")
        throw InputError(fmt::format(
            "'{}' is not the name of a file; allowed: a name in a folder that exists", file.string()));
    if (is_of_database(file))
        throw InputError(fmt::format(
            "{}: cannot be written: is a database, such as Hone's cache, or belongs to one, and is "
            "never replaced; allowed: another file or a free name",
            file.string()));
    struct stat status {};
    if (::lstat(file.c_str(), &status) != 0) {
        if (errno != ENOENT) fail(file, errno);
        return;
    }
    if (S_ISREG(status.st_mode)) return;
    throw InputError(fmt::format(
        "{}: cannot be written: is {}, which is never replaced; allowed: a regular file or a free name",
        file.string(), kind_of(status.st_mode)));
}

AtomicFile::AtomicFile(fs::path file) : file_(std::move(file)) {
    require_replaceable(file_);
    remove_abandoned_parts(file_);
    make_part();
}

void AtomicFile::make_part() {
    constexpr int attempts = 16;  // each is lost only to a process that removes abandoned parts just then
    for (int i = 0; i < attempts; ++i) {
        part_ = part_name(file_);
        descriptor_ =
            UniqueFd(::open(part_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
        if (!descriptor_ && errno != EEXIST) fail(file_, errno);
        if (!descriptor_ || !lock_part(descriptor_.get(), part_)) continue;
        open_to_owner(descriptor_.get(), S_IRUSR | S_IWUSR);
        return;
    }
    fail(file_, EBUSY);
}

AtomicFile::~AtomicFile() {
    if (descriptor_ && !published_) ::unlink(part_.c_str());
}

void AtomicFile::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const ssize_t written =
            ::pwrite(descriptor_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) fail(file_, errno);
        bytes = bytes.subspan(static_cast<std::size_t>(written));
        offset += static_cast<std::uint64_t>(written);
    }
}

void AtomicFile::publish() {
    if (::fsync(descriptor_.get()) != 0) fail(file_, errno);
    require_replaceable(file_);  // what was put there meanwhile
    if (::rename(part_.c_str(), file_.c_str()) != 0) fail(file_, errno);
    published_ = true;
    sync_folder(folder_of(file_));  // without this, a crash may bring the old file back
}

void write_all(int fd, std::span<const std::byte> bytes, const fs::path& file) {
    while (!bytes.empty()) {
        const ssize_t written = ::write(fd, bytes.data(), bytes.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) fail(file, errno);
        bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
}

void write_file(const fs::path& file, std::string_view text) {
    const auto bytes = std::as_bytes(std::span(text));
    if (const UniqueFd stream = open_stream(file)) {
        std::fflush(stdout);  // what was printed before comes first
        return write_all(stream.get(), bytes, file);
    }
    AtomicFile whole(file);
    whole.write_at(0, bytes);
    whole.publish();
}

}  // namespace hone::runtime
