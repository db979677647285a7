// Looking after a cache file: what is in it, whether it is sound, and what can go. Internal to the cache.
#pragma once

#include <cstdint>

#include "cache/cache.h"
#include "cache/database.h"

namespace hone::cache {

[[nodiscard]] Stats stats_of(const Database& database);
[[nodiscard]] VerifyReport verify_database(const sqlite::Connection& connection);
GcReport collect_garbage(const sqlite::Connection& connection, std::int64_t image_limit_bytes);
void drop_lost_images(const sqlite::Connection& connection);
std::int64_t clear_database(const sqlite::Connection& connection, const Filter& filter, bool images);

}  // namespace hone::cache
