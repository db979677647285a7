// What a write-ahead log tells before SQLite looks at it. Internal to the cache.
#pragma once

#include <cstdint>
#include <filesystem>

namespace hone::cache {

/// The header of a write-ahead log, as a process leaves it that was killed before it wrote a frame (SQLite,
/// "Database File Format", 4.1). Its index knows nothing of it, and no reader may make another one: SQLite
/// would wait for a writer to do so.
inline constexpr std::int64_t log_header_bytes = 32;

/// True when the file begins with the header of a log, its checksum included.
[[nodiscard]] bool has_log_header(const std::filesystem::path& log);

}  // namespace hone::cache
