// The design space of a problem: which candidates exist, in which order they are tried, and why others do
// not.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "kernel_templates/family.h"

namespace hone {

struct RankedCandidate {
    Candidate candidate;
    double predicted_us = 0;
};

/// Every allowed config of one variant, in lexicographic order of the declared values.
[[nodiscard]] std::vector<Config> enumerate(const Problem&, const Variant&, const DeviceTraits&);

/// All allowed candidates of the problem's family, fastest prediction first; equal predictions keep declared
/// order, so the result is the same on every machine.
[[nodiscard]] std::vector<RankedCandidate> ranked_space(const Problem&, const DeviceTraits&);

/// The candidate with each other value of one tunable, those that are allowed, in declared order.
[[nodiscard]] std::vector<Candidate> with_other_values(const Problem&, const Candidate&, std::size_t tunable,
                                                       const DeviceTraits&);

struct SpaceCount {
    std::size_t declared = 0;  ///< product of the value lists
    std::size_t allowed = 0;
    std::vector<std::size_t>
        rejected_by;  ///< configs whose first broken constraint is the i-th; last entry: architecture
};
[[nodiscard]] SpaceCount count_space(const Problem&, const Variant&, const DeviceTraits&);

}  // namespace hone
