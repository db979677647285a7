// How a cache file is opened: checks first, touching nothing; then schema and journal. Internal to the cache;
// the tests come in here where the public interface hides what they need to vary.
#pragma once

#include <filesystem>
#include <optional>
#include <span>

#include "cache/cache.h"
#include "cache/file_system.h"
#include "cache/schema.h"
#include "cache/sqlite/connection.h"

namespace hone::cache {

struct DatabaseOptions {
    std::span<const Migration> schema = migrations();
    std::optional<bool> network_file_system;  ///< what to believe instead of statfs
};

struct Database {
    sqlite::Connection connection;
    bool network_file_system = false;
    bool unlocked = false;          ///< read without locks, see `unchanged`
    FileVersion version{};          ///< the file's when it was opened
    FileVersion log_version{};      ///< that of its write-ahead log
    FileVersion journal_version{};  ///< that of its rollback journal

    /// False when a file that was opened without locks has been written since: what was read may be torn,
    /// open it anew.
    [[nodiscard]] bool unchanged() const;
};

/// What SQLite says of a file that somebody has to recover first, or that is locked all the time: opened for
/// reading once more, it is read through a recovered view of it.
[[nodiscard]] bool is_cured_by_recovery(const CacheError& error);

[[nodiscard]] Database open_database(const std::filesystem::path& file, OpenMode mode,
                                     const DatabaseOptions& options = {});

}  // namespace hone::cache
