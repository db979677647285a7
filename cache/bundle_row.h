// One winner as a row of a bundle: its members, in order, with what each may hold. Internal to the cache.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "cache/records.h"

namespace hone::cache {

/// One line of JSON without its end. Loses what a winner has not got: a failure's detail, another status than
/// ok.
[[nodiscard]] std::string write_row(const Trial& winner);

/// Checks members and types, and what the validator checks; throws BundleError beginning with `place` and
/// naming the field. `now_ms` as for `fault_of`.
[[nodiscard]] Trial read_row(const nlohmann::json& row, std::string_view place,
                             std::optional<std::int64_t> now_ms);

/// Throws BundleError unless this build has the family, and problem and candidate are in its design space,
/// written the way this build writes them.
void require_in_design_space(const Trial& winner, std::string_view place);

}  // namespace hone::cache
