// The schema of a cache file and how older ones become newer. Internal to the cache.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace hone::cache {

/// "HONE" in ASCII, in the header of every cache file.
inline constexpr std::int64_t application_id = 0x484f4e45;

/// Takes a database from version `to - 1` to version `to` (`PRAGMA user_version`).
struct Migration {
    int to = 0;
    std::string_view sql;
};

/// All migrations, from an empty file on; the last one's `to` is the version this build reads and writes.
[[nodiscard]] std::span<const Migration> migrations();

}  // namespace hone::cache
