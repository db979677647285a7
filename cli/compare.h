// Winners of two caches, or of two runs, held against each other: the same kernels, kernels that tie, others.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/selection.h"
#include "cli/stored.h"

namespace hone::cli {

/// `here`, of the first layer that has a problem, beside the winners of another cache or of an exported file
/// that are selected, too. Throws CacheError and BundleError.
[[nodiscard]] Outcome compare_with_file(const std::vector<StoredRace>& here, const std::string& file,
                                        const Selection& selection, const Console& console);

}  // namespace hone::cli
