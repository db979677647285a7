// The kernels of a measured problem that are worth trying first elsewhere: on another GPU, at another size,
// of another shape. The winner alone is 1.2 % from the best on the mean and 7 % at worst between an H100 and
// an H200; eight kernels that differ are 0.2 % and 2.7 %. Pure functions.
#pragma once

#include <cstddef>
#include <vector>

#include "cache/records.h"
#include "kernel_templates/family.h"

namespace hone::tuner {

struct MeasuredKernel {
    Candidate candidate;
    double us = 0;  ///< a call
};

/// In how many tunables they differ; all of them where they are of different variants.
[[nodiscard]] int difference(const Candidate& a, const Candidate& b);

/// At most `limit` of those within 10 % of the fastest: the fastest, then one by one the fastest after a
/// bonus of 1 % for each tunable, up to three, in which it differs from all that are chosen already.
[[nodiscard]] std::vector<MeasuredKernel> shortlist(const std::vector<MeasuredKernel>& measured,
                                                    std::size_t limit);

/// The winner's contenders for a bundle: of the trials of its race, as long as they were measured like it, at
/// most `cache::most_contenders`: those that tie with it, then as shortlist() chooses.
[[nodiscard]] std::vector<cache::Trial> contenders(const cache::Trial& winner,
                                                   const std::vector<cache::Trial>& trials);

}  // namespace hone::tuner
