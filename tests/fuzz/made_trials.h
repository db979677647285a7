// Winners that Hone's own writers accept: what the seeds of bundles and databases are made of.
#pragma once

#include <vector>

#include "cache/cache.h"
#include "kernel_templates/family.h"

namespace hone::fuzz {

/// The first problem of a family that tests draw, and its fallback on an H100.
[[nodiscard]] Problem made_problem(const Family& family);
[[nodiscard]] Candidate made_candidate(const Problem& problem);
[[nodiscard]] cache::Trial made_winner(const Family& family);
/// One winner a family of this build.
[[nodiscard]] std::vector<cache::Trial> made_winners();

}  // namespace hone::fuzz
