#include "cache/schema_check.h"

#include <map>
#include <string>

#include <fmt/format.h>

#include "cache/error.h"

namespace hone::cache {
namespace {

using sqlite::Connection;
using sqlite::Statement;

/// Kind and name ("table trial") with the text that made it.
using Objects = std::map<std::string, std::string>;

Objects objects_of(const Connection& connection) {
    // What ANALYZE leaves is data about indexes, and does no harm.
    Statement statement(connection,
                        "SELECT substr(type, 1, 64), substr(name, 1, 64), sql FROM sqlite_schema"
                        " WHERE sql IS NOT NULL AND name NOT GLOB 'sqlite_stat[134]' LIMIT 1000");
    Objects objects;
    while (statement.step()) {
        const std::string type = statement.text();
        const std::string object_name = statement.text();
        objects.insert_or_assign(type + ' ' + object_name, statement.text());
    }
    return objects;
}

Objects made_by(std::span<const Migration> schema, std::int64_t version) {
    const Connection memory = Connection::open_in_memory();
    for (const Migration& migration : schema) {
        if (migration.to <= version) memory.execute(std::string(migration.sql));
    }
    return objects_of(memory);
}

/// What this build makes. Made once in a process: a database in memory takes longer than the rest of an open.
const Objects& made_by_this_build() {
    static const Objects objects = made_by(migrations(), migrations().back().to);
    return objects;
}

[[noreturn]] void refuse(const Connection& connection, const std::string& object, std::string_view why) {
    throw CacheError(CacheError::Kind::damaged,
                     fmt::format("{}: its {} {}", connection.file().string(), object, why),
                     "do not use this file: move it away, or set HONE_CACHE to another one; Hone makes a new "
                     "cache where there is none");
}

}  // namespace

void require_schema(const Connection& connection, std::span<const Migration> schema, std::int64_t version) {
    const bool is_newest = schema.data() == migrations().data() && version == schema.back().to;
    const Objects expected = is_newest ? made_by_this_build() : made_by(schema, version);
    const Objects found = objects_of(connection);
    for (const auto& [object, sql] : expected) {
        const auto other = found.find(object);
        if (other == found.end()) refuse(connection, object, "is missing");
        if (other->second != sql) refuse(connection, object, "is not as this version of Hone makes it");
    }
    for (const auto& [object, sql] : found) {
        if (!expected.contains(object)) refuse(connection, object, "was not made by Hone");
    }
}

}  // namespace hone::cache
