// Kernels that tie with a winner: any of them could have won. Worked out from stored times, which all that
// ran in a heat or a final have from the same interleaved rounds; nothing else has to be stored. Pure
// functions.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "cache/records.h"

namespace hone::cache {

/// Who is no more than this behind the winner may take its place: a race leaves the place to who held it
/// within so much (docs/decisions/0019-shortlists-and-incumbents.md).
inline constexpr double tie_limit = 0.01;
/// Who is no more than this ahead of the winner has not taken its place: that is what a second look asks for.
inline constexpr double held_limit = 0.02;

struct Ties {
    std::vector<Trial> others;  ///< the closest to the winner first, without it
    /// The largest distance from the winner beside them, of medians, or of fastest tenths where these say
    /// that they tie: 0.004 is 0.4 %.
    double within = 0;
};

/// Whether both came to the same final: they were stored with one time, and measured in the same way.
[[nodiscard]] bool of_one_final(const Trial& a, const Trial& b);

/// Those of `trials`, in the order in which they were stored, that tie with `winner`; nobody where it has not
/// won a final. Compared are kernels that ran beside it: in the heat before its final, in that final, and in
/// every heat and final since then, of which the last one counts; by the ratios of their rounds where an
/// incumbent ran beside them, else by their medians. Where these are further apart the fastest tenths are
/// asked, as a race asks them: one that is ahead ties where it is not ahead there, too, one that is behind
/// where it is not behind there by more than `tie_limit`.
[[nodiscard]] Ties ties_of(const Trial& winner, std::span<const Trial> trials);

/// With whom, behind "tied with": "3 others within 0.4 %"; empty where nobody ties.
[[nodiscard]] std::string describe_ties(std::size_t others, double within);

}  // namespace hone::cache
