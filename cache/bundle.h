// Export and import of winners as one text file: JSON, sorted, diffable, schema-versioned, with a SHA-256.
// Configs only, never binaries; docs/cache-format.md specifies it to the byte. Import validates everything
// and takes all or nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/records.h"

namespace hone::cache {

inline constexpr std::string_view bundle_schema = "hone.tuned/1";

/// Deterministic text for these winners: equal sets give equal bytes, whatever their order. Throws
/// BundleError for what read_bundle would refuse: two winners of one key, a trial that is no winner, values
/// out of range.
[[nodiscard]] std::string write_bundle(std::vector<Trial> winners);

/// Reads a bundle. Throws BundleError naming row and field when the text is too large (16 MiB), damaged
/// (checksum), truncated, of another schema, has unknown or missing members, duplicate rows, or a row whose
/// family, problem or candidate is not in this build's catalog and design space. Rows whose template hash
/// differs are accepted: they load as stale. With `now_ms`, this machine's clock, rows from the future are
/// refused; what a build ships with is read without, since it has to be of use where the clock is wrong.
[[nodiscard]] std::vector<Trial> read_bundle(std::string_view text, std::string_view file_name,
                                             std::optional<std::int64_t> now_ms = std::nullopt);

/// Why `write_bundle` cannot take this winner, so that it can be named and left out; nothing when it can.
/// Rows from the future are among them.
[[nodiscard]] std::optional<std::string> why_not_in_bundle(const Trial& winner);

}  // namespace hone::cache
