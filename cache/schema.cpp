#include "cache/schema.h"

#include <array>

namespace hone::cache {
namespace {

constexpr std::string_view version_1 =
#include "cache/schema.sql"
    ;

constexpr std::array<Migration, 1> all_migrations{{{.to = 1, .sql = version_1}}};

}  // namespace

std::span<const Migration> migrations() { return all_migrations; }

}  // namespace hone::cache
