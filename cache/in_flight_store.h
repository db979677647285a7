// Candidates that are on a GPU right now, as rows. Internal to the cache.
#pragma once

#include <cstdint>
#include <vector>

#include "cache/cache.h"
#include "cache/sqlite/connection.h"

namespace hone::cache {

void insert_in_flight(const sqlite::Connection& connection, const InFlight& row);
void delete_in_flight(const sqlite::Connection& connection, const InFlight& row);

enum class Whose : std::uint8_t {
    anyone,
    nobody,  ///< their process has ended; rows of other hosts count once they are a week old
};
/// Oldest first.
[[nodiscard]] std::vector<InFlight> select_in_flight(const sqlite::Connection& connection, Whose whose);
/// Returns how many rows nobody owned.
std::int64_t delete_abandoned(const sqlite::Connection& connection);

}  // namespace hone::cache
