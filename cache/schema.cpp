#include "cache/schema.h"

#include <array>

namespace hone::cache {
namespace {

constexpr std::string_view version_1 =
#include "cache/schema.sql"
    ;

constexpr std::string_view version_2 =
#include "cache/schema_2.sql"
    ;

constexpr std::string_view version_3 =
#include "cache/schema_3.sql"
    ;

constexpr std::array<Migration, 3> all_migrations{
    {{.to = 1, .sql = version_1}, {.to = 2, .sql = version_2}, {.to = 3, .sql = version_3}}};

}  // namespace

std::span<const Migration> migrations() { return all_migrations; }

}  // namespace hone::cache
