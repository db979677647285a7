// What a trial from outside may say: sizes, characters, ranges, and times that a device could have taken.
// Import, merge, verify, export and replay ask here; nothing is repaired. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cache/records.h"
#include "kernel_templates/family.h"

namespace hone::cache {

namespace limits {

struct Range {
    std::int64_t low = 0;
    std::int64_t high = 0;
};

inline constexpr std::size_t text_bytes = 512;
inline constexpr std::size_t detail_bytes = 64 << 10;  ///< a compiler's complaint
inline constexpr double real = 1e15;                   ///< microseconds or millijoules: thirty years
inline constexpr Range compute_major{1, 99};
inline constexpr Range compute_minor{0, 99};
inline constexpr Range sm_count{1, 1'000'000};
inline constexpr Range memory_clock_mhz{0, 1'000'000};
inline constexpr Range sm_clock_mhz{0, 1'000'000};
inline constexpr Range samples{0, 1'000'000'000};
inline constexpr Range registers{0, 1024};
inline constexpr Range shared_bytes{0, 1 << 28};
inline constexpr Range spill_bytes{0, 1 << 28};
inline constexpr Range created_at{0, 253'402'300'800'000};  ///< until the year 10000
inline constexpr std::int64_t clock_slack_ms = std::int64_t{24} * 3600 * 1000;

}  // namespace limits

/// One field that cannot be right: "field 'median_us': is 0.001, allowed: ..."
struct Fault {
    std::string_view field;
    std::string why;
};

/// Less than any device needs for one call, in microseconds: a hundredth of what a device with 8 TB/s and 10
/// PFLOPS would take for the problem's bytes and operations, and never below 20 ns, in which no kernel starts
/// and ends.
[[nodiscard]] double least_us(const Problem& problem);

/// Whether a problem of this build could take so long; a problem of another build has the least time alone.
[[nodiscard]] std::optional<Fault> fault_of_time(double us, const std::optional<Problem>& problem);

/// The first thing that is wrong with a trial from outside; nothing when it may be true. `now_ms` is this
/// machine's clock: a trial may not be from more than a day ahead of it. nullopt: the clock is not asked.
[[nodiscard]] std::optional<Fault> fault_of(const Trial& trial, std::optional<std::int64_t> now_ms);

/// The cheap part: no text is longer than it may be. Rows that break this are not read at all.
[[nodiscard]] bool has_bearable_size(const Trial& trial);

/// "trial 01234567... (rmsnorm ...): field 'median_us': ...", in printable characters and of bearable length.
[[nodiscard]] std::string describe(const Fault& fault, const Trial& trial);

}  // namespace hone::cache
