// Whether a database holds what this build would have made, and nothing else: a view under a table's name can
// run for ever, and a trigger is code. Internal to the cache.
#pragma once

#include <cstdint>
#include <span>

#include "cache/schema.h"
#include "cache/sqlite/connection.h"

namespace hone::cache {

/// Throws CacheError (damaged) that names the first object that is not as `schema` makes it for `version`.
void require_schema(const sqlite::Connection& connection, std::span<const Migration> schema,
                    std::int64_t version);

}  // namespace hone::cache
