// What `hone tune` and `hone compile` share about --kernels: its limits, its failures, and the choice from
// what is stored, which measures nothing.
#pragma once

#include <cstddef>
#include <vector>

#include "cli/command.h"
#include "cli/stored.h"
#include "tuner/search/tuner.h"

namespace hone::cli {

inline constexpr int most_kernels = 1000;  ///< more than any static problem has sizes

/// Makes the command fail where a choice did.
void set_not_covered(const std::vector<tuner::CoverResult>& covers, Outcome& outcome);

/// `sizes` are of one static problem. The winners on GPUs of this architecture where they are no more than
/// `limit`; else whoever loses least at all sizes that have winners, by the measured and replayed times of
/// kernels that ran in heats. Without kernels and with a failure where so few do not serve all; without both
/// where nothing is stored. `winners` are those of all layers, of whatever problem.
[[nodiscard]] tuner::CoverResult stored_cover(const std::vector<Problem>& sizes, std::size_t limit,
                                              const DeviceTraits& traits,
                                              const std::vector<StoredTrial>& winners,
                                              const Console& console);

}  // namespace hone::cli
