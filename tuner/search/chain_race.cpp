#include "tuner/search/chain_race.h"

#include <algorithm>

#include "tuner/search/statistics.h"

namespace hone::tuner {
namespace {

using Clock = std::chrono::steady_clock;

/// The step's time with a candidate over that without it, round by round.
struct Fared {
    Candidate candidate;
    std::vector<double> ratios;

    [[nodiscard]] double ratio() const { return median(ratios); }
};

class Descent {
  public:
    Descent(Chain& chain, const std::vector<ChainPlace>& places, const std::function<bool()>& stop,
            const ChainOptions& options)
        : chain_(chain), places_(places), stop_(stop), options_(options) {
        for (const ChainPlace& place : places) result_.kernels.push_back(place.incumbent);
    }

    ChainResult run() {
        const Clock::time_point end = Clock::now() + options_.limit;
        for (std::size_t place = 0; place < places_.size(); ++place) {
            if (stop_() || Clock::now() >= end) return std::move(result_);
            race(place);
        }
        result_.is_complete = true;
        return std::move(result_);
    }

  private:
    void race(std::size_t place) {
        const std::vector<Candidate> finalists = heat(place);
        const std::vector<Fared> fared = timed(place, finalists, options_.final_rounds);
        const Fared* best = nullptr;
        for (const Fared& one : fared) {
            result_.trials.push_back(
                {.place = place, .candidate = one.candidate, .ratio = one.ratio(), .was_in_final = true});
            if (best == nullptr || one.ratio() < best->ratio()) best = &one;
        }
        if (best == nullptr || best->ratio() > 1 - options_.least_gain) return;
        if (trimmed_mean_interval(best->ratios).high < 1) take(place, best->candidate);
    }

    /// Who may be better than what the place has.
    std::vector<Candidate> heat(std::size_t place) {
        std::vector<Fared> fared = timed(place, places_[place].candidates, options_.heat_rounds);
        std::ranges::sort(fared, {}, &Fared::ratio);
        std::vector<Candidate> finalists;
        for (const Fared& one : fared) {
            result_.trials.push_back({.place = place, .candidate = one.candidate, .ratio = one.ratio()});
            constexpr double beaten = 1.01;  // a heat of a few rounds errs by less
            if (finalists.size() < options_.finalists && one.ratio() <= beaten)
                finalists.push_back(one.candidate);
        }
        return finalists;
    }

    std::vector<Fared> timed(std::size_t place, const std::vector<Candidate>& candidates, int rounds) {
        std::vector<Fared> fared;
        if (candidates.empty()) return fared;
        const std::vector<std::vector<double>> us = chain_.times(place, candidates, rounds);
        for (std::size_t i = 0; i < candidates.size(); ++i) {
            if (!us[i + 1].empty()) fared.push_back({candidates[i], paired_ratios(us[i + 1], us[0])});
        }
        return fared;
    }

    void take(std::size_t place, const Candidate& candidate) {
        result_.kernels[place] = candidate;
        chain_.take(place, candidate);
        const auto is_it = [&](const ChainTrial& trial) {
            return trial.place == place && trial.was_in_final && trial.candidate == candidate;
        };
        std::ranges::find_if(result_.trials, is_it)->taken = true;
    }

    Chain& chain_;
    const std::vector<ChainPlace>& places_;
    const std::function<bool()>& stop_;
    const ChainOptions& options_;
    ChainResult result_;
};

}  // namespace

ChainResult race_in_chain(Chain& chain, const std::vector<ChainPlace>& places,
                          const std::function<bool()>& stop, const ChainOptions& options) {
    return Descent(chain, places, stop, options).run();
}

}  // namespace hone::tuner
