// A database file together with its log and its journal, as SQLite sees them through a VFS whose writes stay
// in memory: recovery happens there, and nothing on disk is touched. For files that cannot be read in place.
// One connection uses an overlay. Internal to the cache.
#pragma once

#include <filesystem>
#include <memory>

struct sqlite3_file;

namespace hone::cache::sqlite {

/// Registered with SQLite under `name()` as long as it lives; outlives the connection that uses it.
class Overlay {
  public:
    /// `below` is SQLite's own open descriptor of the database; another one would drop the locks of this
    /// process when it is closed. The log and the journal beside `file` are read now. Throws CacheError when
    /// one of them is there and cannot be read, or has more than `limit_bytes`.
    Overlay(sqlite3_file* below, const std::filesystem::path& file);
    Overlay(const Overlay&) = delete;
    Overlay& operator=(const Overlay&) = delete;
    ~Overlay();

    [[nodiscard]] const char* name() const;
    /// What the database is called inside of the overlay.
    static constexpr const char* database = "/database";

    /// More than any log or journal of a cache: recovery holds them in memory.
    static constexpr std::int64_t limit_bytes = std::int64_t{1} << 30;

  private:
    struct Files;
    std::unique_ptr<Files> files_;
};

}  // namespace hone::cache::sqlite
