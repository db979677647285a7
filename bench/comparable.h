// Whether a recorded problem's times can be compared, and how: for two_runs.cpp and cost_fit, which judge by
// them. Where power limits the clock, it falls by 5 to 15 % within a second; kernels that were timed one after
// another, as sweeps were until 2026-11-25, then differ by when they ran. In a heat of rounds, in each of
// which every kernel runs once, all of them feel the same clock, and a round is slower or faster for all: that
// is how such a heat is told from the other kind.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <ranges>
#include <set>
#include <string>
#include <vector>

#include "tuner/measure/recorded.h"
#include "tuner/search/statistics.h"

namespace hone::bench {

inline constexpr double steady_clock = 1.02;      ///< stages whose times differ by less ran at one clock
inline constexpr double least_round_effect = 8;   ///< times what chance would explain of a heat's deviations
inline constexpr double same_rounds = 0.04;       ///< mean square deviation from the finalists' rounds, as a root
inline constexpr std::size_t fewest_in_heat = 3;  ///< of whom rounds can be told

inline std::vector<double> part(const std::vector<double>& us, std::size_t begin, std::size_t end) {
    return {us.begin() + static_cast<std::ptrdiff_t>(std::min(begin, us.size())),
            us.begin() + static_cast<std::ptrdiff_t>(std::min(end, us.size()))};
}

/// A median of ratios; 1 where there are none.
inline double typical(const std::vector<double>& ratios) {
    return ratios.empty() ? 1 : tuner::median(ratios);
}

/// How many samples of a problem's candidates are those of a screening, which a recording begins with, and
/// where those of its heat end.
struct Stages {
    std::size_t screened = 3;
    std::size_t heat_end = 13;

    [[nodiscard]] std::size_t rounds() const { return heat_end - screened; }
};

/// A kernel of which a replay takes over a millisecond is screened once, and runs in a heat of five rounds, of
/// fewer where these would take too long: as many as the first of those who have more samples.
inline Stages stages_of(const tuner::RecordedProblem& problem) {
    std::set<std::size_t> counts;
    for (const auto& [_, candidate] : problem.candidates) counts.insert(candidate.us.size());
    const Stages usual;
    const bool has_usual = counts.contains(usual.screened) && counts.contains(usual.heat_end);
    if (has_usual || !counts.contains(1)) return usual;
    const auto more = counts.upper_bound(1);
    return {1, more == counts.end() ? 6 : *more};
}

/// How much of a heat's changes from round to round all kernels share, over what would be expected if each
/// changed by itself: the F statistic of rounds in a two-way analysis of variance of logarithms, 1 on the
/// mean where rounds mean nothing. The first round is left out: every kernel's first replay is slower.
inline double round_effect(const std::vector<std::vector<double>>& heats) {
    const std::size_t rounds = heats.front().size() - 1;
    std::vector<double> of_round(rounds);
    std::vector<std::vector<double>> changes;
    for (const std::vector<double>& heat : heats) {
        std::vector<double>& own = changes.emplace_back();
        double mean = 0;
        for (std::size_t r = 0; r < rounds; ++r) mean += std::log(heat[r + 1]) / static_cast<double>(rounds);
        for (std::size_t r = 0; r < rounds; ++r) {
            own.push_back(std::log(heat[r + 1]) - mean);
            of_round[r] += own.back() / static_cast<double>(heats.size());
        }
    }
    double shared = 0;
    double rest = 0;
    for (std::size_t r = 0; r < rounds; ++r) {
        shared += of_round[r] * of_round[r] * static_cast<double>(heats.size());
        for (const std::vector<double>& own : changes)
            rest += (own[r] - of_round[r]) * (own[r] - of_round[r]);
    }
    return shared * static_cast<double>(heats.size() - 1) / std::max(rest, 1e-12);
}

/// What the stages of a recorded problem say of the clock.
class Comparable {
  public:
    explicit Comparable(const tuner::RecordedProblem& problem) : stages(stages_of(problem)) {
        std::vector<double> heat_over_screening;
        std::vector<double> final_over_heat;
        std::vector<std::vector<double>> heats;
        for (const auto& [_, candidate] : problem.candidates) {
            if (!raced(candidate.us)) continue;
            heats.push_back(part(candidate.us, stages.screened, stages.heat_end));
            const double heat = tuner::median(heats.back());
            heat_over_screening.push_back(heat / tuner::median(part(candidate.us, 0, stages.screened)));
            if (candidate.us.size() >= stages.heat_end + 3)
                final_over_heat.push_back(
                    tuner::median(part(candidate.us, stages.heat_end, candidate.us.size())) / heat);
        }
        clock = typical(heat_over_screening);
        clock_of_final = typical(final_over_heat);
        const auto moved = [](double ratio) { return std::max(ratio, 1 / ratio) > steady_clock; };
        clock_moved = moved(clock) || moved(clock_of_final);
        // Races that screen a long replay once have always been in rounds.
        in_rounds = stages.screened == 1 ||
                    (heats.size() >= fewest_in_heat && round_effect(heats) >= least_round_effect);
        if (clock_moved) learn_rounds(problem);
    }

    Stages stages;
    double clock = 1;           ///< times of the heat over those of the screening
    double clock_of_final = 1;  ///< over those of the heat
    bool clock_moved = false;
    bool in_rounds = false;

    [[nodiscard]] bool is_fair() const { return !clock_moved || in_rounds; }
    [[nodiscard]] bool raced(const std::vector<double>& us) const { return us.size() >= stages.heat_end; }

    /// A raced candidate's heat without what its rounds were slower or faster for all; where the clock did not
    /// move, as it is. Nothing where it ran in rounds of another race, at another clock.
    [[nodiscard]] std::optional<std::vector<double>> heat(const std::vector<double>& us) const {
        std::vector<double> heat = part(us, stages.screened, stages.heat_end);
        if (!clock_moved) return heat;
        double squares = 0;
        for (std::size_t r = 0; r < heat.size(); ++r) heat[r] /= round_[r];
        const double middle = tuner::median(heat);
        for (const double sample : heat) squares += std::pow(std::log(sample / middle), 2);
        if (std::sqrt(squares / static_cast<double>(heat.size())) > same_rounds) return std::nullopt;
        return heat;
    }
    /// The final's samples, brought to the heat's clock round by round.
    [[nodiscard]] std::vector<double> final_samples(const std::vector<double>& us) const {
        std::vector<double> samples = part(us, stages.heat_end, us.size());
        if (clock_moved) samples.resize(std::min(samples.size(), final_round_.size()));
        for (std::size_t r = 0; r < samples.size(); ++r)
            samples[r] /= clock_moved ? final_round_[r] : clock_of_final;
        return samples;
    }

  private:
    /// Rounds are the finalists': whoever was looked at later ran in others.
    void learn_rounds(const tuner::RecordedProblem& problem) {
        std::vector<const std::vector<double>*> finalists;
        std::size_t most = stages.heat_end;
        for (const auto& [_, candidate] : problem.candidates) most = std::max(most, candidate.us.size());
        for (const auto& [_, candidate] : problem.candidates) {
            const bool has_final = most < stages.heat_end + 3 || candidate.us.size() >= stages.heat_end + 3;
            if (raced(candidate.us) && has_final) finalists.push_back(&candidate.us);
        }
        std::vector<double> levels;
        for (const auto* us : finalists)
            levels.push_back(tuner::median(part(*us, stages.screened, stages.heat_end)));
        for (std::size_t r = stages.screened; r < most; ++r) {
            std::vector<double> ratios;
            for (std::size_t i = 0; i < finalists.size(); ++i)
                if (r < finalists[i]->size()) ratios.push_back((*finalists[i])[r] / levels[i]);
            if (2 * ratios.size() <= finalists.size()) break;
            (r < stages.heat_end ? round_ : final_round_).push_back(tuner::median(ratios));
        }
        round_.resize(stages.rounds(), 1);
    }

    std::vector<double> round_;  ///< how much slower each of the heat was for the finalists; the final's likewise
    std::vector<double> final_round_;
};

}  // namespace hone::bench
