// Kin: plainer problems whose winners serve another one as candidates. What a family says of its own kin
// stands in family.h (Family::kin and Family::from_kin); here is how dispatch and tuner follow it, one kin
// after the other.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "kernel_templates/family.h"

namespace hone {

/// The problem, its kin, the kin's kin, and so on: at least the problem itself.
[[nodiscard]] std::vector<Problem> with_kin(const Problem& problem);

/// What serves the first of these problems where this candidate serves the last: `line` is where with_kin()
/// begins. Nothing where the first one's family has no such variant. Whether the first one allows it is not
/// looked at.
[[nodiscard]] std::optional<Candidate> from_kin(std::span<const Problem> line, Candidate candidate);

}  // namespace hone
