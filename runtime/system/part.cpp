#include "runtime/system/part.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <string_view>

#include "runtime/system/file_descriptor.h"
#include "runtime/system/folder.h"
#include "runtime/system/random_bits.h"
#include "runtime/system/write_error.h"

namespace hone::runtime {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t random_digits = 16;
constexpr std::size_t max_name_bytes = 255;

/// "winners.json" -> "winners.json.part-"
std::string part_prefix(const fs::path& target) {
    constexpr std::string_view infix = ".part-";
    std::string name = target.filename().string();
    name.resize(std::min(name.size(), max_name_bytes - infix.size() - random_digits));
    return name.append(infix);
}

bool is_part_name(std::string_view name, std::string_view prefix) {
    return name.size() == prefix.size() + random_digits && name.starts_with(prefix) &&
           name.find_first_not_of("0123456789abcdef", prefix.size()) == std::string_view::npos;
}

/// The file that a descriptor is of still has this name.
bool has_name(int fd, const fs::path& name) noexcept {
    struct stat open {};
    struct stat named {};
    return ::fstat(fd, &open) == 0 && ::lstat(name.c_str(), &named) == 0 && open.st_dev == named.st_dev &&
           open.st_ino == named.st_ino;
}

void remove_if_abandoned(const fs::path& part) {
    struct stat status {};
    if (::lstat(part.c_str(), &status) != 0 || status.st_uid != ::geteuid()) return;
    const bool is_folder = S_ISDIR(status.st_mode);
    if (!is_folder && !S_ISREG(status.st_mode)) return;
    // NFS gives an exclusive lock only to who may write.
    const int access = is_folder ? O_RDONLY | O_DIRECTORY : O_RDWR | O_NONBLOCK;
    const UniqueFd fd(::open(part.c_str(), access | O_NOFOLLOW | O_CLOEXEC));
    if (!fd || ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0 || !has_name(fd.get(), part)) return;
    if (is_folder) {
        remove_folder_of_files(part);
    } else {
        ::unlink(part.c_str());
    }
}

/// This user's, who has not all of the rights.
bool lacks(const struct stat& status, mode_t rights) noexcept {
    return status.st_uid == ::geteuid() && (status.st_mode & rights) != rights;
}

}  // namespace

fs::path part_name(const fs::path& target) {
    return folder_of(target) / fmt::format("{}{:016x}", part_prefix(target), random_bits());
}

bool lock_part(int fd, const fs::path& part) noexcept {
    if (::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return false;
    return has_name(fd, part);
}

void remove_abandoned_parts(const fs::path& target) {
    const std::string prefix = part_prefix(target);
    for (const fs::path& entry : entries_of(folder_of(target))) {
        if (is_part_name(entry.filename().string(), prefix)) remove_if_abandoned(entry);
    }
}

void open_to_owner(int fd, mode_t rights) noexcept {
    struct stat status {};
    if (::fstat(fd, &status) == 0 && lacks(status, rights))
        static_cast<void>(::fchmod(fd, status.st_mode | rights));
}

void open_to_owner(const fs::path& made, mode_t rights) noexcept {
    struct stat status {};
    if (::lstat(made.c_str(), &status) == 0 && lacks(status, rights))
        static_cast<void>(::chmod(made.c_str(), status.st_mode | rights));
}

fs::path folder_of(const fs::path& file) {
    return file.has_parent_path() ? file.parent_path() : fs::path(".");
}

void sync_folder(const fs::path& folder) {
    const UniqueFd directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!directory || ::fsync(directory.get()) == 0) return;  // a folder may be one that can only be written
    if (errno != EINVAL && errno != ENOTSUP && errno != EROFS)
        throw WriteError(folder, "its names cannot be brought to the disk", errno);
}

}  // namespace hone::runtime
