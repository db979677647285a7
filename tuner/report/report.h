// What a tuning run shows at its end: a table for each static problem, and the figures in it. Text only; the
// command prints it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tuner/report/report_text.h"
#include "tuner/search/tuner.h"

namespace hone::tuner {

/// Time that the problem's fewest bytes take at the device's theoretical bandwidth; 0 when either is not
/// known. A problem that fits into the second-level cache may be faster.
[[nodiscard]] double bandwidth_floor_us(const Problem& problem, const DeviceTraits& traits);
/// floor / time: 1.0 is perfect.
[[nodiscard]] std::optional<double> floor_share(const Problem& problem, double us,
                                                const DeviceTraits& traits);
/// Default's time over the winner's.
[[nodiscard]] std::optional<double> speedup_over_default(const ProblemResult& result);

/// One row for each static problem whose kernels were limited: how many serve how many sizes, and what that
/// loses. Empty where nothing was limited.
[[nodiscard]] std::string covers_text(const std::vector<CoverResult>& covers, const Page& page);

/// One table for each static problem: sizes of a call, winner, microseconds, speed-up, share of the floor,
/// provenance, and who ties with the winner.
[[nodiscard]] std::string tables(const TuneResult& result, const DeviceTraits& traits, const Page& page);

}  // namespace hone::tuner
