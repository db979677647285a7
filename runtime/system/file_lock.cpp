#include "runtime/system/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <thread>

#include "runtime/system/atomic_file.h"
#include "runtime/system/part.h"
#include "runtime/system/write_error.h"

namespace hone::runtime {
namespace {

namespace fs = std::filesystem;

UniqueFd open_or_make(const fs::path& file) {
    require_replaceable(file);
    const int fd =
        ::open(file.c_str(), O_RDONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666);
    if (fd < 0) throw_write_error(file, "cannot be opened", errno);
    UniqueFd opened(fd);
    open_to_owner(opened.get(), S_IRUSR);
    return opened;
}

/// False: another process holds it.
bool lock(int fd) { return ::flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK; }

/// Whether the name still stands for what was opened: its last holder may have replaced it.
bool is_named(int fd, const fs::path& file) {
    struct stat opened {};
    struct stat named {};
    return ::fstat(fd, &opened) == 0 && ::lstat(file.c_str(), &named) == 0 && opened.st_dev == named.st_dev &&
           opened.st_ino == named.st_ino;
}

}  // namespace

FileLock::FileLock(const fs::path& file, std::chrono::milliseconds patience) {
    const auto end = std::chrono::steady_clock::now() + patience;
    while (true) {
        descriptor_ = open_or_make(file);
        if (lock(descriptor_.get()) && is_named(descriptor_.get(), file)) return;
        if (std::chrono::steady_clock::now() > end)
            throw WriteError(file, "is held by another process", EWOULDBLOCK);
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
}

}  // namespace hone::runtime
