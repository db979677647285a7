// How many tiles a routing needs, as cost models expect it: preference, never part of a template's hash.
#pragma once

#include "kernel_templates/expert_linear/expert_linear.h"

namespace hone::expert_linear {

/// ExpertProblem::tiles(), but where experts have many rows these scatter as a choice of `top_k` of all
/// experts does, by 1 - top_k / experts less than by their root.
[[nodiscard]] inline std::int64_t routed_tiles(const ExpertProblem& p, std::int64_t rows) {
    if (p.top_k == p.experts || p.rows_an_expert() < 8) return p.tiles(rows);
    const auto active = static_cast<double>(p.active());
    const double mean = static_cast<double>(p.places()) / active;
    const double chosen = static_cast<double>(p.top_k) / static_cast<double>(p.experts);
    const double width = std::sqrt(2 * mean * (1 - chosen));
    double tiles = 1;
    for (auto full = static_cast<double>(rows); full < mean + 4 * width; full += static_cast<double>(rows))
        tiles += 0.5 * std::erfc((full + 0.5 - mean) / width);
    return std::llround(tiles * active);
}

}  // namespace hone::expert_linear
