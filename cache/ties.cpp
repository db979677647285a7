#include "cache/ties.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace hone::cache {
namespace {

bool is_measured_alike(const Trial& a, const Trial& b) {
    return a.key == b.key && a.toolchain == b.toolchain && a.provenance == b.provenance;
}

/// A heat or a final: all that ran in it were stored with its time.
using Batch = std::pair<Stage, std::int64_t>;

Batch batch_of(const Trial& trial) { return {trial.stage, trial.created_at}; }

/// The winner's own times where others can be held against it: in the heat before its final, in that, and
/// since then.
std::map<Batch, Timing> own_times(const Trial& winner, std::span<const Trial> trials) {
    std::map<Batch, Timing> own{{batch_of(winner), winner.timing}};
    const Trial* heat = nullptr;
    for (const Trial& trial : trials) {
        const bool has_time =
            trial.status == TrialStatus::ok && trial.stage != Stage::screened && trial.timing.median_us > 0;
        if (!has_time || trial.candidate != winner.candidate || !is_measured_alike(trial, winner)) continue;
        if (trial.created_at > winner.created_at) {
            own.emplace(batch_of(trial), trial.timing);
        } else if (trial.stage == Stage::raced && (heat == nullptr || trial.created_at >= heat->created_at)) {
            heat = &trial;
        }
    }
    if (heat != nullptr) own.emplace(batch_of(*heat), heat->timing);
    return own;
}

/// By rounds, where both ran beside an incumbent; else by medians.
double ratio_of(const Timing& other, const Timing& own) {
    const bool is_paired = other.incumbent_ratio > 0 && own.incumbent_ratio > 0;
    return is_paired ? other.incumbent_ratio / own.incumbent_ratio : other.median_us / own.median_us;
}

/// How far the other one is from the winner, as far as both rank them alike; nothing where it does not tie.
std::optional<double> tied_within(const Timing& own, const Timing& other) {
    const double behind = ratio_of(other, own) - 1;
    const double behind_at_best = other.p10_us / own.p10_us - 1;
    if (behind <= tie_limit && behind >= -held_limit) return std::abs(behind);
    const bool is_level_at_best = behind > 0 ? behind_at_best <= tie_limit : behind_at_best >= 0;
    return is_level_at_best ? std::optional(std::min(std::abs(behind), std::abs(behind_at_best)))
                            : std::nullopt;
}

}  // namespace

bool of_one_final(const Trial& a, const Trial& b) {
    return a.stage == Stage::final_round && batch_of(a) == batch_of(b) && is_measured_alike(a, b);
}

Ties ties_of(const Trial& winner, std::span<const Trial> trials) {
    if (winner.stage != Stage::final_round || !(winner.timing.median_us > 0)) return {};
    const std::map<Batch, Timing> own = own_times(winner, trials);
    std::map<std::string, std::pair<const Trial*, const Timing*>> beside;  // the last of each candidate
    for (const Trial& trial : trials) {
        const bool is_another =
            !trial.winner && trial.status == TrialStatus::ok && trial.candidate != winner.candidate;
        const auto batch = own.find(batch_of(trial));
        if (is_another && batch != own.end() && is_measured_alike(trial, winner))
            beside[trial.candidate] = {&trial, &batch->second};
    }
    std::vector<std::pair<double, const Trial*>> tied;
    for (const auto& [_, pair] : beside) {
        const auto& [trial, timing] = pair;
        if (const auto within = tied_within(*timing, trial->timing)) tied.emplace_back(*within, trial);
    }
    std::ranges::stable_sort(tied, {}, &std::pair<double, const Trial*>::first);
    Ties found;
    for (const auto& [distance, trial] : tied) found.others.push_back(*trial);
    if (!tied.empty()) found.within = tied.back().first;
    return found;
}

std::string describe_ties(std::size_t others, double within) {
    if (others == 0) return {};
    const double rounded_up = std::max(0.0, std::ceil(within * 1000 - 1e-6)) / 10;
    return fmt::format("{} {} within {:.1f} %", others, others == 1 ? "other" : "others", rounded_up);
}

}  // namespace hone::cache
