#include "cache/file_system.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace hone::cache {
namespace {

namespace fs = std::filesystem;
using Kind = CacheError::Kind;

// linux/magic.h and the sources of those that are not in it.
constexpr std::array<std::uint32_t, 24> network_types{
    0x6969,      // NFS
    0x517B,      // SMB
    0xFE534D42,  // SMB2
    0xFF534D42,  // CIFS
    0x564C,      // NCP
    0x5346414F,  // AFS
    0x6B414653,  // kAFS
    0x73757245,  // Coda
    0x0BD00BD0,  // Lustre
    0x0BD00BD1,  // Lustre, older
    0x47504653,  // GPFS
    0x19830326,  // BeeGFS
    0x00C36400,  // Ceph
    0x01161970,  // GFS2
    0x7461636F,  // OCFS2
    0x20030528,  // OrangeFS, PVFS2
    0xAAD7AAEA,  // PanFS
    0x61636673,  // ACFS
    0xBEEFDEAD,  // SNFS
    0x65735546,  // FUSE: sshfs, GlusterFS, and also virtiofs
    0x01021997,  // 9p
    0x786F4256,  // VirtualBox shared folders
    0xBACBACBC,  // VMware shared folders
    0x7C7C6673,  // Parallels shared folders
};

[[noreturn]] void fail(int error, const fs::path& path, std::string_view doing) {
    const Kind kind = error == ENOSPC || error == EDQUOT                    ? Kind::full
                      : error == EROFS || error == EACCES || error == EPERM ? Kind::read_only
                                                                            : Kind::unusable;
    const char* hint = kind == Kind::full ? "free space, or set HONE_CACHE to a file on another file system"
                       : error == ENOENT
                           ? "hone tune and hone import make a cache; or set HONE_CACHE to another file"
                           : "set HONE_CACHE to a file in a directory of your own";
    throw CacheError(kind, fmt::format("{}: cannot {}: {}", path.string(), doing, std::strerror(error)),
                     hint);
}

[[noreturn]] void refuse(const fs::path& path, std::string_view why, const std::string& hint) {
    throw CacheError(Kind::unsafe_permissions, fmt::format("{}: {}", path.string(), why), hint);
}

struct stat status_of(const fs::path& path) {
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0) fail(errno, path, "look at it");
    return status;
}

void require_ours(const fs::path& path, const struct stat& status, OpenMode mode) {
    const uid_t me = ::geteuid();
    const bool trusted = status.st_uid == me || (mode == OpenMode::read_only && status.st_uid == 0);
    if (!trusted) {
        refuse(path, fmt::format("belongs to user {}, not to user {} who wants to use it", status.st_uid, me),
               "set HONE_CACHE to a file in a directory of your own");
    }
    if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        // A folder with the sticky bit is meant to be everybody's, as /tmp is.
        const std::string hint =
            (status.st_mode & S_ISVTX) != 0
                ? fmt::format(
                      "set HONE_CACHE to a file in a directory of your own, below '{}', say: mkdir -m 700",
                      path.string())
                : fmt::format(
                      "run: chmod go-w '{}' (if it should be yours alone), or set HONE_CACHE to another "
                      "place",
                      path.string());
        refuse(path, fmt::format("may be written by other users (mode {:04o})", status.st_mode & 07777),
               hint);
    }
}

/// Throws where that cannot be known: behind a folder that may not be entered, of a name that is too long.
bool folder_exists(const fs::path& path) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (!fs::status_known(status)) fail(error.value(), path, "look at it");
    return fs::is_directory(status);
}

/// In a user namespace without all users, root and everybody else who is not mapped show as this user: a
/// container whose folders are its host's. Nobody then knows whose they are.
bool is_unknown_owner(uid_t owner) {
    constexpr uid_t overflow_uid = 65534;
    constexpr std::uint64_t all_users = 4294967295;
    if (owner != overflow_uid) return false;
    std::ifstream map("/proc/self/uid_map");
    std::uint64_t inside = 0;
    std::uint64_t outside = 0;
    std::uint64_t count = all_users;
    map >> inside >> outside >> count;
    return count != all_users;
}

/// Whoever may write a folder that the cache is below, or owns it, can put another cache in its place.
void require_safe_parents(const fs::path& directory) {
    for (fs::path parent = directory; parent != parent.parent_path();) {
        parent = parent.parent_path();
        const struct stat status = status_of(parent);
        const uid_t owner = status.st_uid;
        if (owner != 0 && owner != ::geteuid() && !is_unknown_owner(owner)) {
            refuse(parent, fmt::format("belongs to user {}, who could put another cache below it", owner),
                   "set HONE_CACHE to a file whose parent folders belong to root or to you");
        }
        if ((status.st_mode & S_IWOTH) != 0 && (status.st_mode & S_ISVTX) == 0) {
            refuse(
                parent,
                fmt::format("may be written by everybody (mode {:04o}), who could put another cache below it",
                            status.st_mode & 07777),
                fmt::format("run: chmod o-w '{}' (or +t), or set HONE_CACHE to another place",
                            parent.string()));
        }
    }
}

/// Whether this process may do with the file itself what `access` says, by its effective user.
bool is_allowed(const fs::path& path, int access) {
    return ::faccessat(AT_FDCWD, path.c_str(), access, AT_EACCESS) == 0;
}

/// What SQLite opens beside the file: a link leads elsewhere, and a pipe is waited at for good.
void require_files_beside(const fs::path& file) {
    for (const char* suffix : {"-wal", "-shm", "-journal"}) {
        const fs::path beside = with_suffix(file, suffix);
        struct stat status {};
        if (::lstat(beside.c_str(), &status) != 0 || S_ISREG(status.st_mode)) continue;
        throw CacheError(Kind::unusable, fmt::format("{}: is not a regular file", beside.string()),
                         "move it away, or set HONE_CACHE to another file");
    }
}

}  // namespace

bool is_network_file_system(std::int64_t f_type) {
    return std::ranges::find(network_types, static_cast<std::uint32_t>(f_type)) != network_types.end();
}

FileSystem file_system_of(const fs::path& directory) {
    struct statfs system {};
    if (::statfs(directory.c_str(), &system) != 0) fail(errno, directory, "look at its file system");
    return {.network = is_network_file_system(static_cast<std::int64_t>(system.f_type)),
            .read_only = (static_cast<unsigned long>(system.f_flags) & ST_RDONLY) != 0};
}

void create_private_directory(const fs::path& directory) {
    if (directory.empty() || folder_exists(directory)) return;
    create_private_directory(directory.parent_path());
    if (::mkdir(directory.c_str(), 0700) != 0) {
        const int error = errno;
        if (error == EEXIST && folder_exists(directory)) return;
        fail(error, directory, "create the directory");
    }
    if (::chmod(directory.c_str(), 0700) != 0) fail(errno, directory, "make the directory private");
}

/// By mknod(), which makes a regular file without a descriptor of it: closing one would release the locks
/// that SQLite holds on the file elsewhere in this process. Nothing is left behind by a kill but an empty
/// file, which is an empty cache.
void create_private_file(const fs::path& file) {
    struct stat status {};
    if (::lstat(file.c_str(), &status) == 0) return;
    if (::mknod(file.c_str(), S_IFREG | 0600, 0) != 0) {
        if (errno == EEXIST) return;
        fail(errno, file, "create it");
    }
    if (::chmod(file.c_str(), 0600) != 0) fail(errno, file, "make it private");
}

fs::path resolved(const fs::path& file) {
    std::error_code error;
    const fs::path absolute = fs::absolute(file, error);
    if (error || !absolute.has_filename()) {
        throw CacheError(Kind::unusable, fmt::format("'{}' is not the name of a file", file.string()),
                         "set HONE_CACHE to a file, such as ~/.cache/hone/cache.db");
    }
    const fs::path directory = fs::canonical(absolute.parent_path(), error);
    if (error) fail(error.value(), absolute.parent_path(), "find the directory");
    return directory / absolute.filename();
}

void require_safe(const fs::path& file, OpenMode mode) {
    require_ours(file.parent_path(), status_of(file.parent_path()), mode);
    require_safe_parents(file.parent_path());
    const struct stat status = status_of(file);
    if (S_ISLNK(status.st_mode)) {
        refuse(file, "is a symbolic link, under which locks and the write-ahead log can go astray",
               "set HONE_CACHE to the file it points to");
    }
    if (S_ISDIR(status.st_mode)) {
        throw CacheError(Kind::unusable, fmt::format("{}: is a directory", file.string()),
                         fmt::format("set HONE_CACHE to a file, such as {}/cache.db", file.string()));
    }
    if (!S_ISREG(status.st_mode)) {
        throw CacheError(Kind::not_a_cache, fmt::format("{}: is not a regular file", file.string()),
                         "set HONE_CACHE to another file; this one was left as it is");
    }
    if (status.st_nlink != 1) {
        refuse(file,
               "has several names (hard links), under which locks and the write-ahead log can go astray",
               "copy it to a file of its own and set HONE_CACHE to that");
    }
    require_ours(file, status, mode);
    require_files_beside(file);
}

bool can_read(const fs::path& file) { return is_allowed(file, R_OK); }

bool can_write(const fs::path& file) {
    return is_allowed(file.parent_path(), W_OK) && is_allowed(file, W_OK);
}

FileVersion version_of(const fs::path& file) {
    struct stat status {};
    if (::lstat(file.c_str(), &status) != 0) return {};
    const auto nanoseconds = [](const timespec& time) {
        return time.tv_sec * std::int64_t{1'000'000'000} + time.tv_nsec;
    };
    return {.inode = status.st_ino,
            .size = status.st_size,
            .modified_ns = nanoseconds(status.st_mtim),
            .changed_ns = nanoseconds(status.st_ctim)};
}

fs::path with_suffix(fs::path file, const char* suffix) {
    file += suffix;
    return file;
}

}  // namespace hone::cache
