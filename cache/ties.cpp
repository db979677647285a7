#include "cache/ties.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace hone::cache {
namespace {

double distance(const Trial& winner, const Trial& other) {
    return std::abs(other.timing.median_us / winner.timing.median_us - 1);
}

}  // namespace

bool of_one_final(const Trial& a, const Trial& b) {
    return a.stage == Stage::final_round && b.stage == Stage::final_round && a.created_at == b.created_at &&
           a.key == b.key && a.toolchain == b.toolchain && a.provenance == b.provenance;
}

Ties ties_of(const Trial& winner, std::span<const Trial> trials) {
    Ties ties;
    if (!(winner.timing.median_us > 0)) return ties;
    for (const Trial& trial : trials) {
        const bool is_another = !trial.winner && trial.status == TrialStatus::ok;
        if (!is_another || !of_one_final(winner, trial) || distance(winner, trial) > tie_limit) continue;
        ties.others.push_back(trial);
        ties.within = std::max(ties.within, distance(winner, trial));
    }
    std::ranges::stable_sort(ties.others, {}, [&](const Trial& trial) { return distance(winner, trial); });
    return ties;
}

std::string describe_ties(std::size_t others, double within) {
    if (others == 0) return {};
    const double rounded_up = std::max(0.0, std::ceil(within * 1000 - 1e-6)) / 10;
    return fmt::format("{} {} within {:.1f} %", others, others == 1 ? "other" : "others", rounded_up);
}

}  // namespace hone::cache
