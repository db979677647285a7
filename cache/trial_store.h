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

enum class Origin : std::uint8_t {
    here,       ///< measured by this machine's tuner, just now
    elsewhere,  ///< imported or merged
};

/// Inserts those that are not there yet, in one transaction; returns how many were new. Throws
/// std::invalid_argument, inserting nothing, for a trial with a time or energy that is not a finite number.
std::int64_t insert_trials(const sqlite::Connection& connection, std::span<const Trial> trials,
                           Origin origin = Origin::here);

/// Trials that could be read.
struct Selected {
    std::vector<Trial> trials;
    std::int64_t damaged = 0;  ///< rows that could not be, as far as that shows
};

/// Sorted by trust in their order: those from elsewhere by time and identity, then those from here as they
/// were stored.
[[nodiscard]] Selected select_trials(const sqlite::Connection& connection, const Filter& filter);
/// Sorted by key, and for each key the best first.
[[nodiscard]] Selected select_past_winners(const sqlite::Connection& connection, const Filter& filter);

/// Those past screening that did not win, sorted as select_trials() does.
[[nodiscard]] Selected select_raced(const sqlite::Connection& connection, const Filter& filter);

std::int64_t delete_trials(const sqlite::Connection& connection, const Filter& filter);

/// Calls back with each row's identity and its trial, nullptr where the content does not match.
void visit_trials(const sqlite::Connection& connection,
                  const std::function<void(const std::string& identity, const Trial* trial)>& visit);

}  // namespace hone::cache
