// Winners of two caches, or of two runs, held against each other: the same kernels, kernels that tie, others.
#pragma once

#include <string>
#include <vector>

#include "tuner/cli/command.h"
#include "tuner/cli/selection.h"
#include "tuner/cli/stored.h"

namespace hone::cli {

/// `here`, of the first layer that has a problem, beside the winners of another cache or of an exported file
/// that are selected, too. Throws CacheError and BundleError.
[[nodiscard]] Outcome compare_with_file(const std::vector<StoredRace>& here, const std::string& file,
                                        const Selection& selection, const Console& console);

}  // namespace hone::cli
