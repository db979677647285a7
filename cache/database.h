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
    bool immutable = false;     ///< read without locks, see `unchanged`
    FileVersion version{};      ///< the file's when it was opened
    FileVersion log_version{};  ///< that of its write-ahead log

    /// False when a file that was opened without locks has been written since: what was read may be torn,
    /// open it anew.
    [[nodiscard]] bool unchanged() const;
};

[[nodiscard]] Database open_database(const std::filesystem::path& file, OpenMode mode,
                                     const DatabaseOptions& options = {});

}  // namespace hone::cache
