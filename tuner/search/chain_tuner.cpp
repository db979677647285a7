#include "tuner/search/chain_tuner.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "cache/kept_step.h"
#include "cache/process.h"
#include "tuner/search/knowledge.h"
#include "tuner/search/proven.h"
#include "tuner/search/statistics.h"

namespace hone::tuner {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int passes = 2;
constexpr int compared_rounds = 30;
constexpr int start_rounds = 9;
constexpr double least_gain = 0.002;  ///< of a start, or a way to compute a step, over another

std::chrono::milliseconds ms_since(Clock::time_point start) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start);
}

class ChainTuner {
  public:
    ChainTuner(const std::vector<ChainStep>& steps, const TuneOptions& options, Measurer& measurer,
               ImageSource& images, cache::Cache& cache, const std::atomic<bool>& stop)
        : steps_(steps),
          options_(options),
          measurer_(measurer),
          images_(images),
          cache_(cache),
          interrupted_(stop) {
        result_.steps.resize(steps.size());
    }

    ChainTuneResult run(const ProgressSink& progress) {
        if (!options_.retune && all_known()) return std::move(result_);
        result_.alone = tune(workload(), options_, measurer_, images_, cache_, progress, interrupted_);
        begin();
        for (int pass = 0; pass < passes && !stops(); ++pass) {
            const std::vector<Proven> proven = prove_all();
            for (std::size_t step = 0; pass == 0 && step < steps_.size() && !stops(); ++step)
                choose_start(step, proven);
            for (std::size_t step = 0; step < steps_.size() && !stops(); ++step) race(step, pass, proven);
        }
        for (std::size_t step = 0; step < steps_.size(); ++step) compare_with_start(step);
        for (std::size_t step = 0; step < steps_.size(); ++step) choose_way(step);
        for (std::size_t step = 0; step < steps_.size(); ++step) store(step);
        cache_.drop_lost_images();
        return std::move(result_);
    }

  private:
    [[nodiscard]] bool stops() const {
        return interrupted_ || (options_.budget && Clock::now() - start_ >= *options_.budget);
    }

    [[nodiscard]] Workload workload() const {
        Workload all{.name = steps_.front().name};
        for (const ChainStep& step : steps_) {
            for (const ChainKernel& kernel : step.kernels) {
                if (std::ranges::find(all.problems, kernel.problem) == all.problems.end())
                    all.problems.push_back(kernel.problem);
            }
        }
        return all;
    }

    /// Every kernel of every step was chosen in a step here before.
    bool all_known() {
        const Knowledge knowledge(cache_, measurer_.device(), measurer_.provenance());
        for (std::size_t i = 0; i < steps_.size(); ++i) {
            ChainStepResult& step = result_.steps[i];
            step.is_kept = true;
            for (const ChainKernel& kernel : steps_[i].kernels) {
                const std::optional<cache::Trial> winner = knowledge.finished_winner(kernel.problem);
                if (!winner || winner->chain.empty()) return forget();
                if (steps_[i].instead_of && !cache::is_of_kept_step(winner->chain)) step.is_kept = false;
                step.kernels.push_back(*parse_candidate(*kernel.problem.family, winner->candidate));
            }
            step.alone = step.kernels;
            step.reused = step.is_complete = true;
            if (steps_[i].instead_of) result_.steps[*steps_[i].instead_of].is_kept = !step.is_kept;
        }
        return true;
    }

    bool forget() {
        result_.steps.assign(steps_.size(), {});
        return false;
    }

    /// Puts the winners alone into the steps. Where one cannot be launched what the step has stays, which is
    /// proven and stored as chosen, so that the winner alone does not get the place the next time either.
    void begin() {
        for (std::size_t i = 0; i < steps_.size(); ++i) {
            const ChainStep& step = steps_[i];
            std::vector<Candidate>& alone = result_.steps[i].alone;
            for (const ChainKernel& kernel : step.kernels) alone.push_back(kernel.candidate);
            for (std::size_t place = 0; place < step.kernels.size(); ++place) {
                const Problem& problem = step.kernels[place].problem;
                const auto tuned =
                    std::ranges::find(result_.alone.problems, problem, &ProblemResult::problem);
                if (tuned == result_.alone.problems.end() || !tuned->winner) continue;
                const Candidate winner = *parse_candidate(*problem.family, tuned->winner->candidate);
                if (is_loadable(step, place, winner, alone)) alone[place] = winner;
            }
            result_.steps[i].kernels = alone;
        }
    }

    std::vector<Proven> prove_all() {
        const Clock::time_point start = Clock::now();
        std::vector<Led> led;
        for (std::size_t i = 0; i < steps_.size(); ++i) {
            for (std::size_t place = 0; place < steps_[i].kernels.size(); ++place) {
                const auto& [problem, had] = steps_[i].kernels[place];
                if (std::ranges::find(led, problem, &Led::problem) == led.end())
                    led.push_back({problem, result_.steps[i].kernels[place], had});
            }
        }
        std::vector<Proven> proven = prove(led, measurer_, images_, cache_, [this] { return stops(); });
        result_.proving += ms_since(start);
        return proven;
    }

    /// Kernels of one variant can make a step short together that each of them, alone among others, makes
    /// longer: place by place nobody would find them. So the race begins with the winners alone or, where
    /// that is shorter, with what the step had before, or one variant's fastest in all places that have it.
    void choose_start(std::size_t number, const std::vector<Proven>& proven) {
        const Clock::time_point start = Clock::now();
        const ChainStep& step = steps_[number];
        ChainStepResult& result = result_.steps[number];
        for (std::size_t place = 0; place < step.kernels.size(); ++place)
            step.chain->take(place, result.kernels[place]);
        std::vector<Candidate> best = result.kernels;
        double best_ratio = 1 - least_gain;
        std::vector<std::vector<Candidate>> starts = uniform_starts(number, proven);
        starts.push_back(as_it_was(number, proven));
        for (const std::vector<Candidate>& others : starts) {
            if (others == result.kernels) continue;
            const auto [now, with] = step.chain->beside(others, start_rounds);
            const double ratio = median(paired_ratios(with, now));
            if (ratio >= best_ratio) continue;
            best_ratio = ratio;
            best = others;
        }
        result.kernels = best;
        result.elapsed += ms_since(start);
    }

    /// For each variant that two places or more have: its fastest alone there, the winners alone elsewhere.
    std::vector<std::vector<Candidate>> uniform_starts(std::size_t number,
                                                       const std::vector<Proven>& proven) const {
        const ChainStep& step = steps_[number];
        const std::vector<Candidate>& winners = result_.steps[number].kernels;
        std::map<const Variant*, std::vector<std::optional<Candidate>>> fastest;
        for (std::size_t place = 0; place < step.kernels.size(); ++place) {
            for (const Candidate& candidate : of_problem(step.kernels[place].problem, proven)) {
                auto& places = fastest[candidate.variant];
                places.resize(step.kernels.size());
                if (!places[place] && is_loadable(step, place, candidate, winners)) places[place] = candidate;
            }
        }
        std::vector<std::vector<Candidate>> starts;
        for (const auto& [variant, places] : fastest) {
            if (std::ranges::count_if(places, [](const auto& one) { return one.has_value(); }) < 2) continue;
            std::vector<Candidate>& start = starts.emplace_back(winners);
            for (std::size_t place = 0; place < places.size(); ++place)
                if (places[place]) start[place] = *places[place];
            if (start == winners) starts.pop_back();
        }
        return starts;
    }

    /// What the step had before the run, the winners alone where that was not proven.
    std::vector<Candidate> as_it_was(std::size_t number, const std::vector<Proven>& proven) const {
        const ChainStep& step = steps_[number];
        std::vector<Candidate> start = result_.steps[number].kernels;
        for (std::size_t place = 0; place < step.kernels.size(); ++place) {
            const auto& [problem, candidate] = step.kernels[place];
            const std::vector<Candidate> others = of_problem(problem, proven);
            if (std::ranges::find(others, candidate) != others.end() &&
                is_loadable(step, place, candidate, start))
                start[place] = candidate;
        }
        return start;
    }

    static std::vector<Candidate> of_problem(const Problem& problem, const std::vector<Proven>& proven) {
        std::vector<Candidate> found;
        const auto one = std::ranges::find(proven, problem, &Proven::problem);
        for (const cache::Trial& trial : one->trials) {
            if (std::optional<Candidate> candidate = parse_candidate(*problem.family, trial.candidate))
                found.push_back(*std::move(candidate));
        }
        return found;
    }

    /// A kernel that was measured in an earlier run may have no image any more, or the step may not do with
    /// it. What the place has, it can have.
    static bool is_loadable(const ChainStep& step, std::size_t place, const Candidate& candidate,
                            const std::vector<Candidate>& had) {
        return candidate == had[place] || !step.chain->times(place, {candidate}, 1).back().empty();
    }

    void race(std::size_t number, int pass, const std::vector<Proven>& proven) {
        const Clock::time_point start = Clock::now();
        const ChainStep& step = steps_[number];
        ChainStepResult& result = result_.steps[number];
        std::vector<ChainPlace> places;
        for (std::size_t place = 0; place < step.kernels.size(); ++place) {
            places.push_back({step.kernels[place].problem, result.kernels[place],
                              candidates(number, place, pass, proven)});
            step.chain->take(place, result.kernels[place]);
        }
        ChainResult raced = race_in_chain(*step.chain, places, [this] { return stops(); });
        result.kernels = std::move(raced.kernels);
        std::ranges::move(raced.trials, std::back_inserter(result.trials));
        if (pass == 0) result.is_complete = raced.is_complete;
        result.elapsed += ms_since(start);
    }

    /// In a second pass those that were in a final, and those that the first one did not know.
    std::vector<Candidate> candidates(std::size_t step, std::size_t place, int pass,
                                      const std::vector<Proven>& proven) const {
        const Problem& problem = steps_[step].kernels[place].problem;
        const ChainStepResult& result = result_.steps[step];
        std::vector<Candidate> found;
        for (const Candidate& candidate : of_problem(problem, proven)) {
            if (candidate != result.kernels[place] && (pass == 0 || is_worth_again(result, place, candidate)))
                found.push_back(candidate);
        }
        return found;
    }

    static bool is_worth_again(const ChainStepResult& result, std::size_t place, const Candidate& candidate) {
        bool was_tried = result.alone[place] == candidate;
        for (const ChainTrial& trial : result.trials) {
            if (trial.place != place || trial.candidate != candidate) continue;
            if (trial.was_in_final) return true;
            was_tried = true;
        }
        return !was_tried;
    }

    void compare_with_start(std::size_t number) {
        const ChainStep& step = steps_[number];
        ChainStepResult& result = result_.steps[number];
        if (!result.is_complete) return;
        for (std::size_t place = 0; place < step.kernels.size(); ++place)
            step.chain->take(place, result.kernels[place]);
        const auto [after, before] = step.chain->beside(result.alone, compared_rounds);
        result.after_us = median(after);
        result.before_us = median(before);
        result.is_kept = true;
    }

    /// Compares a step with the one that it is instead of, both as they are in the end. Where one of them was
    /// not raced to its end neither is stored: it may be longer for that alone.
    void choose_way(std::size_t number) {
        const ChainStep& step = steps_[number];
        if (!step.instead_of) return;
        ChainStepResult& result = result_.steps[number];
        ChainStepResult& other = result_.steps[*step.instead_of];
        if (!result.is_complete || !other.is_complete) {
            result.is_complete = other.is_complete = result.is_kept = other.is_kept = false;
            return;
        }
        const auto [us, others] = step.chain->against(*steps_[*step.instead_of].chain, compared_rounds);
        const std::vector<double> ratios = paired_ratios(us, others);
        result.ratio = median(ratios);
        result.is_kept = result.ratio <= 1 - least_gain && trimmed_mean_interval(ratios).high < 1;
        other.is_kept = !result.is_kept;
    }

    void store(std::size_t number) {
        const ChainStep& step = steps_[number];
        const ChainStepResult& result = result_.steps[number];
        if (!result.is_complete) return;
        const Knowledge knowledge(cache_, measurer_.device(), measurer_.provenance());
        for (std::size_t place = 0; place < step.kernels.size(); ++place) {
            const Problem& problem = step.kernels[place].problem;
            if (!result.is_kept && is_of_other_way(number, problem)) continue;
            const cache::Trial* const trial = knowledge.valid_trial(problem, result.kernels[place]);
            if (trial == nullptr || trial->status != cache::TrialStatus::ok) continue;
            cache::Trial winner = *trial;
            winner.winner = true;
            winner.stage = cache::Stage::final_round;
            winner.created_at = cache::now_ms();
            winner.chain = step.name;
            if (!result.is_kept) winner.chain += cache::not_kept;
            cache_.store(winner);
        }
    }

    /// Whether the way that is kept in place of this one has the problem, too.
    [[nodiscard]] bool is_of_other_way(std::size_t number, const Problem& problem) const {
        const auto has_it = [&](const ChainStep& step) {
            return std::ranges::find(step.kernels, problem, &ChainKernel::problem) != step.kernels.end();
        };
        if (steps_[number].instead_of) return has_it(steps_[*steps_[number].instead_of]);
        return std::ranges::any_of(
            steps_, [&](const ChainStep& step) { return step.instead_of == number && has_it(step); });
    }

    const Clock::time_point start_ = Clock::now();
    const std::vector<ChainStep>& steps_;
    const TuneOptions& options_;
    Measurer& measurer_;
    ImageSource& images_;
    cache::Cache& cache_;
    const std::atomic<bool>& interrupted_;
    ChainTuneResult result_;
};

}  // namespace

// It was right and fast alone; its trial is replaced by one that ends its problem's interest in it.
void store_fault(const Problem& problem, const Candidate& candidate, cache::TrialStatus status,
                 const std::string& why, const DeviceInfo& device, cache::Cache& cache) {
    const Knowledge knowledge(cache, device, cache::Provenance::measured);
    const cache::Trial* const trial = knowledge.valid_trial(problem, candidate);
    if (trial == nullptr) return;
    cache::Trial failed = *trial;
    failed.winner = false;
    failed.status = status;
    failed.timing = {};
    failed.energy_mj = 0;
    failed.created_at = cache::now_ms();
    failed.chain.clear();
    failed.detail = why;
    cache.store(failed);
}

ChainTuneResult tune_chains(const std::vector<ChainStep>& steps, const TuneOptions& options,
                            Measurer& measurer, ImageSource& images, cache::Cache& cache,
                            const ProgressSink& progress, const std::atomic<bool>& stop) {
    return ChainTuner(steps, options, measurer, images, cache, stop).run(progress);
}

}  // namespace hone::tuner
