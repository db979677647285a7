// Trials as rows. A row whose content does not match its identity is damaged: it is never returned. Internal
// to the cache.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "cache/cache.h"
#include "cache/sqlite/connection.h"

namespace hone::cache {

/// Inserts those that are not there yet, in one transaction; returns how many were new. Throws
/// std::invalid_argument, inserting nothing, for a trial with a time or energy that is not a finite number.
std::int64_t insert_trials(const sqlite::Connection& connection, std::span<const Trial> trials);

/// Sorted by time, then identity.
[[nodiscard]] std::vector<Trial> select_trials(const sqlite::Connection& connection, const Filter& filter);
/// Sorted by key, and for each key the best first.
[[nodiscard]] std::vector<Trial> select_past_winners(const sqlite::Connection& connection,
                                                     const Filter& filter);

std::int64_t delete_trials(const sqlite::Connection& connection, const Filter& filter);

/// Calls back with each row's identity and whether its content matches.
void visit_trials(const sqlite::Connection& connection,
                  const std::function<void(const std::string& identity, bool intact)>& visit);

}  // namespace hone::cache
