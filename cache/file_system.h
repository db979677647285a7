// What the cache asks of the file system: private files, no tricks with links, and which journal is safe
// there. Never opens an existing database file: closing a second descriptor would drop the locks SQLite holds
// on it. Internal to the cache.
#pragma once

#include <cstdint>
#include <filesystem>

#include "cache/cache.h"

namespace hone::cache {

/// By statfs(2)'s f_type. FUSE and 9p count as well: what stands behind them is unknown. WAL needs memory
/// shared by all processes, which no network file system offers.
[[nodiscard]] bool is_network_file_system(std::int64_t f_type);

struct FileSystem {
    bool network = false;
    bool read_only = false;  ///< mounted so: nobody can write
};
[[nodiscard]] FileSystem file_system_of(const std::filesystem::path& directory);

/// Creates what is missing of a directory, each level with mode 0700 whatever the umask.
void create_private_directory(const std::filesystem::path& directory);

/// Creates an empty file with mode 0600 whatever the umask; does nothing when it exists.
void create_private_file(const std::filesystem::path& file);

/// Directory with all links resolved, and the file's own name.
[[nodiscard]] std::filesystem::path resolved(const std::filesystem::path& file);

/// Throws CacheError (unsafe_permissions) unless directory and file belong to this user (read-only also:
/// root) and nobody else may write them, all folders above belong to this user or root and are not
/// everybody's to write (but with the sticky bit, as /tmp), and the file is a regular one with one name.
/// Throws `unusable` when the file does not exist, or a log or journal beside it is no regular one.
void require_safe(const std::filesystem::path& file, OpenMode mode);

/// True when this process can read the file.
[[nodiscard]] bool can_read(const std::filesystem::path& file);

/// True when this process can create files in the directory and write the file.
[[nodiscard]] bool can_write(const std::filesystem::path& file);

/// Tells whether a file was changed meanwhile; equal for equal content unless someone works against us.
struct FileVersion {
    std::uint64_t inode = 0;
    std::int64_t size = -1;  ///< -1: does not exist
    std::int64_t modified_ns = 0;
    std::int64_t changed_ns = 0;

    friend bool operator==(const FileVersion&, const FileVersion&) = default;
};
[[nodiscard]] FileVersion version_of(const std::filesystem::path& file);

/// "cache.db" -> "cache.db-wal"
[[nodiscard]] std::filesystem::path with_suffix(std::filesystem::path file, const char* suffix);

}  // namespace hone::cache
