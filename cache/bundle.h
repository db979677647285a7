// Export and import of winners, each with its contenders, as one text file: JSON, sorted, diffable,
// schema-versioned, with a SHA-256. Configs only, never binaries; docs/cache-format.md specifies it to the
// byte. Import validates everything and takes all or nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/records.h"

namespace hone::cache {

/// What a bundle was made for: the name of a model or of a capture, and of a capture the share of its time
/// that each problem takes.
struct BundlePurpose {
    std::string name;                      ///< letters, digits, '.', '_' and '-'
    std::map<std::string, double> shares;  ///< by the text of the problem; may be empty
    friend bool operator==(const BundlePurpose&, const BundlePurpose&) = default;
};

/// The name with '_' for what no purpose has.
[[nodiscard]] std::string purpose_name(std::string_view name);

inline constexpr std::string_view bundle_schema = "hone.tuned/3";
// Read, not written:
inline constexpr std::string_view bundle_schema_without_clocks = "hone.tuned/2";
inline constexpr std::string_view bundle_schema_without_contenders = "hone.tuned/1";

inline constexpr std::size_t max_bundle_bytes = std::size_t{16} << 20;

/// Of one winner, at most.
inline constexpr std::size_t most_contenders = 7;

/// Deterministic text for these trials: equal sets give equal bytes, whatever their order. A trial that is no
/// winner is a contender of the winner of its key: another tuner tries it first where the winner's own GPU is
/// not at hand. A contender keeps its candidate, template hash, median, and whether it came to the winner's
/// final; the rest is its winner's. Throws BundleError for what read_bundle would refuse: two winners of one
/// key, a contender without a winner or more than `most_contenders` of them, another status than ok, values
/// out of range, more bytes than `max_bundle_bytes`.
[[nodiscard]] std::string write_bundle(std::vector<Trial> trials,
                                       const std::optional<BundlePurpose>& purpose = std::nullopt);

/// Reads a bundle: winners, each followed by its contenders, the fastest first. Throws BundleError naming row
/// and field when the text is too large (16 MiB), damaged (checksum), truncated, of another schema, has
/// unknown or missing members, duplicate rows, or a row whose family, problem or candidate is not in this
/// build's catalog and design space. Rows whose template hash differs are accepted: they load as stale. With
/// `now_ms`, this machine's clock, rows from the future are refused; what a build ships with is read without,
/// since it has to be of use where the clock is wrong.
[[nodiscard]] std::vector<Trial> read_bundle(std::string_view text, std::string_view file_name,
                                             std::optional<std::int64_t> now_ms = std::nullopt);

struct Bundle {
    std::vector<Trial> trials;  ///< as read_bundle() returns them
    std::optional<BundlePurpose> purpose;
};
/// The same, with what the bundle says that it is for.
[[nodiscard]] Bundle read_whole_bundle(std::string_view text, std::string_view file_name,
                                       std::optional<std::int64_t> now_ms = std::nullopt);

/// The winners among lines of a bundle that ships with the build, as write_bundle() writes them: a row on a
/// line, contenders last. They are all that dispatch needs, so contenders are skipped, and what was true when
/// the build was tested is not asked again: checksum and design space. Throws BundleError beginning with
/// `place` and naming the row for what is no such line.
[[nodiscard]] std::vector<Trial> read_packaged_winners(std::string_view lines, std::string_view place);
/// The same, each winner followed by its contenders: what a tuner starts from.
[[nodiscard]] std::vector<Trial> read_packaged_races(std::string_view lines, std::string_view place);

/// Why `write_bundle` cannot take this trial, so that it can be named and left out; nothing when it can.
/// Rows from the future are among them.
[[nodiscard]] std::optional<std::string> why_not_in_bundle(const Trial& trial);

}  // namespace hone::cache
