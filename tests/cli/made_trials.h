// Caches full of made-up trials of real problems and real candidates, as the page of `hone report` has to
// bear and to draw them: times follow the families' own models, the rest a fixed generator. Always the same
// rows.
#pragma once

#include <cstddef>
#include <filesystem>
#include <vector>

#include "cache/records.h"

namespace hone::test {

struct MadeTrials {
    std::size_t problems = 40;  ///< of each GPU; at most 500
    std::size_t trials_a_problem = 60;
    std::size_t gpus = 2;  ///< an H100, and an A100
    bool hostile = false;  ///< and one row whose every text wants to be HTML or a script
};

/// Of each problem one winner and one default; of some an older winner, too. Three in a hundred have failed.
[[nodiscard]] std::vector<cache::Trial> made_trials(const MadeTrials& options);

/// Into a new cache, whose folder is made for its owner alone.
void write_made_cache(const std::filesystem::path& file, const MadeTrials& options);

}  // namespace hone::test
