// One winner with its contenders as a row of a bundle: the members, in order, with what each may hold.
// Internal to the cache.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "cache/records.h"

namespace hone::cache {

/// One line of JSON without its end. Loses what a winner has not got: a failure's detail, another status than
/// ok; and of contenders what is not theirs alone.
[[nodiscard]] std::string write_row(const Trial& winner, std::span<const Trial> contenders);

/// A contender as far as its winner's row knows it: it ran in the heat, and neither candidate nor time are
/// its own yet.
[[nodiscard]] Trial contender_of(const Trial& winner);

/// The winner, then its contenders. Checks members and types, and what the validator checks; throws
/// BundleError beginning with `place` and naming the field. `now_ms` as for `fault_of`.
[[nodiscard]] std::vector<Trial> read_row(const nlohmann::json& row, std::string_view place,
                                          std::optional<std::int64_t> now_ms);

/// Throws BundleError unless this build has the family, and problem and candidate are in its design space,
/// written the way this build writes them.
void require_in_design_space(const Trial& trial, std::string_view place);

}  // namespace hone::cache
