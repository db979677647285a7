#include "tuner/search/tuner.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "kernel_templates/space.h"
#include "tuner/search/covering.h"
#include "tuner/search/problem_tuner.h"
#include "tuner/search/time_left.h"

namespace hone::tuner {
namespace {

using Steady = std::chrono::steady_clock;

constexpr std::size_t problems_ahead = 12;  // that compilers work on besides the one that is measured

/// The first sizes of all shapes, then their second ones: by the time that a size has its turn, its
/// neighbour's winner is known, and images made for it have long been asked for. A capture's problems stand
/// in their order already.
std::vector<std::size_t> in_turns(const Workload& workload) {
    const std::vector<Problem>& problems = workload.problems;
    std::vector<std::pair<std::size_t, std::size_t>> turns;  // round, index
    std::map<std::string, std::size_t> rounds;
    for (std::size_t i = 0; i < problems.size(); ++i) {
        const std::size_t round = rounds[to_string(static_part(problems[i]))]++;
        turns.emplace_back(workload.captured.empty() ? round : 0, i);
    }
    std::ranges::sort(turns);
    std::vector<std::size_t> order;
    for (const auto& [round, index] : turns) order.push_back(index);
    return order;
}

class Run {
  public:
    Run(const Workload& workload, const TuneOptions& options, Measurer& measurer, ImageSource& images,
        cache::Cache& cache, const ProgressSink& progress, const std::atomic<bool>& stop)
        : workload_(workload),
          turns_(in_turns(workload)),
          options_(options),
          progress_sink_(progress),
          interrupted_(stop),
          knowledge_(cache, options.lower_trials, measurer.device(), measurer.provenance()),
          predictions_(measurer.device().traits),
          context_{options,
                   measurer,
                   images,
                   cache,
                   knowledge_,
                   predictions_,
                   [this] { return stop_reason() != StopReason::finished; },
                   [this](double best_us) { candidate_done(best_us); }} {}

    TuneResult run() {
        const std::int64_t compiled_before = context_.images.compiled();
        const std::chrono::nanoseconds busy_before = context_.measurer.busy();
        const std::chrono::nanoseconds waited_before = context_.images.waited();
        progress_.problems_total = workload_.problems.size();
        find_open_problems();
        estimate_candidates();
        time_left_.emplace(open_problems());
        for (const std::size_t index : turns_) {
            if (!finished_[index]) prepare_list(workload_.problems[index], context_);
        }
        answer_first();
        results_.resize(workload_.problems.size());
        for (place_ = 0; place_ < turns_.size(); ++place_) {
            const std::size_t index = turns_[place_];
            if (stop_reason() != StopReason::finished && !finished_[index]) {
                keep_first_answer(index);
            } else {
                tune_problem(index);
            }
        }
        choose_few_kernels();
        drop_lost_images();
        for (std::optional<ProblemResult>& result : results_) {
            if (result) result_.problems.push_back(*std::move(result));
        }
        result_.stopped = all_finished() && is_covered_ ? StopReason::finished : stop_reason();
        result_.compiles = context_.images.compiled() - compiled_before;
        using std::chrono::duration_cast;
        using std::chrono::milliseconds;
        result_.measuring = duration_cast<milliseconds>(context_.measurer.busy() - busy_before);
        result_.waiting = duration_cast<milliseconds>(context_.images.waited() - waited_before);
        result_.elapsed = now();
        return std::move(result_);
    }

  private:
    [[nodiscard]] StopReason stop_reason() const {
        if (interrupted_) return StopReason::interrupted;
        if (options_.budget && Steady::now() - start_ >= *options_.budget) return StopReason::budget;
        return StopReason::finished;
    }

    [[nodiscard]] bool all_finished() const { return problems_completed_ == workload_.problems.size(); }

    [[nodiscard]] std::vector<Problem> open_problems() const {
        std::vector<Problem> open;
        for (std::size_t i = 0; i < finished_.size(); ++i) {
            if (!finished_[i]) open.push_back(workload_.problems[i]);
        }
        return open;
    }

    [[nodiscard]] std::chrono::milliseconds now() const {
        return std::chrono::duration_cast<std::chrono::milliseconds>(Steady::now() - start_);
    }

    void find_open_problems() {
        for (const Problem& problem : workload_.problems) {
            finished_.push_back(options_.retune ? std::nullopt : knowledge_.finished_winner(problem));
        }
    }

    void estimate_candidates() {
        const std::size_t each = expected_candidates(options_.effort);
        const auto open = std::ranges::count_if(finished_, [](const auto& winner) { return !winner; });
        progress_.candidates_total = each * static_cast<std::size_t>(open);
        estimate_each_ = each;
    }

    /// Where times are known before images, every problem has an answer at once; the races refine them.
    void answer_first() {
        first_answers_.resize(workload_.problems.size());
        for (std::size_t i = 0; i < workload_.problems.size(); ++i) {
            if (finished_[i] || stop_reason() != StopReason::finished) continue;
            first_answers_[i] = predicted_answer(workload_.problems[i], context_);
            if (!first_answers_[i]) continue;
            context_.cache.store(*first_answers_[i]);
            ++progress_.answered;
        }
        if (progress_.answered > 0) report();
    }

    /// A problem that is not reached.
    void keep_first_answer(std::size_t index) {
        if (!first_answers_[index]) return;
        results_[index] = {
            .problem = workload_.problems[index], .winner = first_answers_[index], .ties = {}, .failure = {}};
    }

    void tune_problem(std::size_t index) {
        const Problem& problem = workload_.problems[index];
        progress_.current = std::string(problem.family->name) + ' ' + dynamic_text(problem);
        progress_.current_done = 0;
        progress_.current_total = 0;
        progress_.best_us = 0;
        report();
        ProblemResult result = finished_[index] ? reuse(problem, *finished_[index]) : race(index);
        if (!result.winner && stop_reason() != StopReason::finished) result.winner = first_answers_[index];
        const bool raced_to_the_end = result.winner && result.winner->stage == cache::Stage::final_round;
        if (raced_to_the_end || stop_reason() == StopReason::finished) ++problems_completed_;
        ++progress_.problems_done;
        progress_.finished_winner = result.winner;
        results_[index] = std::move(result);
        report();
        progress_.finished_winner.reset();
    }

    ProblemResult reuse(const Problem& problem, const cache::Trial& winner) const {
        return {.problem = problem,
                .reused = true,
                .winner = winner,
                .fallback = knowledge_.stored_default(problem),
                .runner_up = knowledge_.stored_runner_up(problem, winner),
                .ties = knowledge_.stored_ties(problem, winner),
                .failure = {}};
    }

    ProblemResult race(std::size_t index) {
        const Problem& problem = workload_.problems[index];
        CandidateList candidates = list_candidates(problem, context_);
        progress_.candidates_total += candidates.order.size();
        progress_.candidates_total -= std::min(progress_.candidates_total, estimate_each_);
        progress_.current_total = candidates.order.size();
        time_left_->begin(now());
        prefetch(problem, candidates);
        prefetch_ahead();
        ProblemTuner tuner(problem, std::move(candidates), context_);
        ProblemResult result = tuner.run();
        time_left_->end(now());
        result_.measurements += tuner.launched();
        return result;
    }

    /// Sizes without a winner stay without.
    void choose_few_kernels() {
        if (!options_.kernels) return;
        std::map<std::string, std::vector<ProblemResult*>> shapes;
        for (std::optional<ProblemResult>& result : results_) {
            if (result && result->winner) shapes[to_string(static_part(result->problem))].push_back(&*result);
        }
        for (const auto& [_, sizes] : shapes) {
            is_covered_ = stop_reason() == StopReason::finished;
            if (!is_covered_) return;
            progress_.current =
                fmt::format("kernels for {} sizes of {}", sizes.size(), sizes.front()->problem.family->name);
            report();
            const CoverResult& cover =
                result_.covers.emplace_back(cover_sizes(sizes, *options_.kernels, context_));
            result_.measurements += cover.measurements;
            is_covered_ = cover.failure.empty() || stop_reason() == StopReason::finished;
        }
    }

    void prefetch(const Problem& problem, const CandidateList& candidates) {
        if (!context_.measurer.needs_images()) return;
        std::vector<Candidate> needed;
        for (const Candidate& candidate : surely_tried(problem, candidates, context_.measurer)) {
            const cache::Trial* known = knowledge_.valid_trial(problem, candidate);
            if (known == nullptr || !is_lasting(known->status)) needed.push_back(candidate);
        }
        context_.images.prefetch(problem, needed);
    }

    /// Compilers work on the next open problems while this one is measured, as far as their images have room.
    void prefetch_ahead() {
        prefetched_ = std::max(prefetched_, place_ + 1);
        const std::size_t end = std::min(turns_.size(), place_ + 1 + problems_ahead);
        for (; prefetched_ < end && context_.images.has_room(); ++prefetched_) {
            const std::size_t index = turns_[prefetched_];
            if (finished_[index]) continue;
            prefetch(workload_.problems[index], list_candidates(workload_.problems[index], context_));
        }
    }

    /// Nobody launches what lost a race: nine in ten images. A cache that is busy keeps them until the next
    /// time.
    void drop_lost_images() {
        if (!context_.measurer.needs_images() || !context_.cache.writable()) return;
        try {
            context_.cache.drop_lost_images();
        } catch (const cache::CacheError&) {
        }
    }

    void candidate_done(double best_us) {
        ++progress_.candidates_done;
        ++progress_.current_done;
        if (std::isfinite(best_us)) progress_.best_us = best_us;
        time_left_->advance(progress_.current_done, progress_.current_total);
        report();
    }

    void report() {
        if (!progress_sink_) return;
        progress_.left = time_left_->left(now());
        progress_sink_(progress_);
    }

    const Workload& workload_;
    const std::vector<std::size_t> turns_;  ///< indices of problems in the order in which they are tuned
    const TuneOptions& options_;
    const ProgressSink& progress_sink_;
    const std::atomic<bool>& interrupted_;
    const Steady::time_point start_ = Steady::now();
    Knowledge knowledge_;
    Predictions predictions_;
    RunContext context_;
    std::vector<std::optional<cache::Trial>> finished_;
    std::vector<std::optional<cache::Trial>> first_answers_;
    std::vector<std::optional<ProblemResult>> results_;  ///< by problem
    std::size_t place_ = 0;                              ///< in `turns_`, of the problem at hand
    std::size_t prefetched_ = 0;                         ///< first place that no images were asked for
    Progress progress_;
    std::optional<TimeLeft> time_left_;  ///< of the open problems
    TuneResult result_;
    std::size_t estimate_each_ = 0;
    std::size_t problems_completed_ = 0;
    bool is_covered_ = true;  ///< unless that was stopped
};

}  // namespace

TuneResult tune(const Workload& workload, const TuneOptions& options, Measurer& measurer, ImageSource& images,
                cache::Cache& cache, const ProgressSink& progress, const std::atomic<bool>& stop) {
    return Run(workload, options, measurer, images, cache, progress, stop).run();
}

}  // namespace hone::tuner
