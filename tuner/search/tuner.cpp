#include "tuner/search/tuner.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>

#include <fmt/format.h>

#include "kernel_templates/space.h"
#include "tuner/search/covering.h"
#include "tuner/search/problem_tuner.h"
#include "tuner/search/second_look.h"
#include "tuner/search/time_left.h"

namespace hone::tuner {
namespace {

using Steady = std::chrono::steady_clock;

constexpr std::size_t problems_ahead = 12;  // that compilers work on besides the one that is measured
constexpr double second_look_share = 0.3;   // of the time until then; as measured on an H200

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
          knowledge_(cache, measurer.device(), measurer.provenance()),
          predictions_(measurer.device().traits),
          asked_(measurer.device().traits.arch()),
          context_{options,
                   measurer,
                   images,
                   cache,
                   knowledge_,
                   predictions_,
                   asked_,
                   [this] { return stop_reason() != StopReason::finished; },
                   [this](double best_us) { candidate_done(best_us); }} {}

    TuneResult run() {
        const std::int64_t compiled_before = context_.images.compiled();
        const std::chrono::nanoseconds busy_before = context_.measurer.busy();
        const std::chrono::nanoseconds waited_before = context_.images.waited();
        progress_.problems_total = workload_.problems.size();
        find_open_problems();
        if (options_.lower_trials && !open_problems().empty()) knowledge_.add_lower(options_.lower_trials());
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
        look_again();
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
    /// A second look at a problem: its winner, then who may beat it.
    struct Look {
        std::size_t problem = 0;
        CandidateList candidates;
    };

    [[nodiscard]] const DeviceTraits& traits() const { return context_.measurer.device().traits; }

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
        begin_progress(problem, 0);
        if (!finished_[index]) time_left_->begin(now());
        ProblemResult result = finished_[index] ? reuse(problem, *finished_[index]) : race(index);
        if (!finished_[index]) time_left_->end(now());
        if (!result.winner && stop_reason() != StopReason::finished) result.winner = first_answers_[index];
        const bool raced_to_the_end = result.winner && result.winner->stage == cache::Stage::final_round;
        if (raced_to_the_end || stop_reason() == StopReason::finished) ++problems_completed_;
        ++progress_.problems_done;
        results_[index] = std::move(result);
        report();
    }

    void begin_progress(const Problem& problem, std::size_t candidates) {
        progress_.current = std::string(problem.family->name) + ' ' + dynamic_text(problem);
        progress_.current_done = 0;
        progress_.current_total = candidates;
        progress_.best_us = 0;
        report();
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
        prefetch(problem, candidates);
        prefetch_ahead();
        ProblemTuner tuner(problem, std::move(candidates), context_);
        ProblemResult result = tuner.run();
        result_.measurements += tuner.launched();
        return result;
    }

    /// What the run has learned since may say more than what was known when a problem had its turn; not more
    /// than an earlier run's look at it on such a GPU.
    [[nodiscard]] bool is_worth_another_look(const std::optional<ProblemResult>& result) const {
        const bool is_chosen_by_measuring = options_.effort == Effort::quick &&
                                            context_.measurer.provenance() != cache::Provenance::predicted;
        return is_chosen_by_measuring && result && !result->reused && result->winner &&
               result->winner->stage == cache::Stage::final_round &&
               !was_raced_here(result->problem, context_);
    }

    /// Who may beat the winner of a problem that has been raced.
    void plan_look(std::size_t index) {
        const ProblemResult& result = *results_[index];
        const Problem& problem = result.problem;
        const Candidate winner = *parse_candidate(*problem.family, result.winner->candidate);
        const std::vector<Candidate> found = challengers(problem, *result.winner, context_);
        if (found.empty()) return;
        CandidateList list{.order = {winner}, .fallback = fallback(problem, traits()), .incumbent = winner};
        list.order.insert(list.order.end(), found.begin(), found.end());
        list.first_culprit = list.order.size();
        prefetch(problem, list);
        progress_.candidates_total += list.order.size();
        looks_.push_back({index, std::move(list)});
    }

    /// Compilers work for the first looks while the last problems have their first turn, then as many looks
    /// ahead as they were problems ahead.
    void plan_looks() {
        const auto has_room = [&] {
            return looks_.empty() || (looks_.size() < problems_ahead && context_.images.has_room());
        };
        for (; looks_planned_ < place_ && has_room(); ++looks_planned_) {  // those that have been raced
            if (is_worth_another_look(results_[turns_[looks_planned_]])) plan_look(turns_[looks_planned_]);
        }
    }

    void look_again() {
        time_left_.emplace(open_problems());
        is_second_look_ = true;
        for (; looks_done_ < turns_.size(); ++looks_done_) {
            if (stop_reason() != StopReason::finished) return;
            plan_looks();
            if (finished_[turns_[looks_done_]]) continue;
            time_left_->begin(now());
            if (!looks_.empty() && looks_.front().problem == turns_[looks_done_]) {
                const Look look = std::move(looks_.front());
                looks_.pop_front();
                challenge_winner(look);
            }
            time_left_->end(now());
        }
    }

    void challenge_winner(const Look& look) {
        ProblemResult& result = *results_[look.problem];
        begin_progress(result.problem, look.candidates.order.size());
        ProblemTuner tuner(result.problem, look.candidates, context_);
        std::optional<ProblemResult> better = tuner.challenge();
        result_.measurements += tuner.launched();
        const cache::Trial* again = knowledge_.valid_trial(result.problem, *look.candidates.incumbent);
        if (again != nullptr && is_lasting(again->status))
            better = race(look.problem);  // it failed this time
        result.candidates += tuner.tried();
        result.failed += tuner.failed();
        if (!better || !better->winner) {
            result.ties = knowledge_.stored_ties(result.problem, *result.winner);
            return;
        }
        if (!better->fallback) better->fallback = result.fallback;
        better->candidates = result.candidates;
        better->failed = result.failed;
        result = *std::move(better);
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
        for (const Candidate& candidate : candidates.order) asked_.add(problem, candidate);
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
        if (prefetched_ == turns_.size()) plan_looks();
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
        const bool is_to_be_continued = !is_second_look_ && options_.effort == Effort::quick;
        if (progress_.left && is_to_be_continued) {
            const std::chrono::duration<double> whole = now() + *progress_.left;
            *progress_.left +=
                std::chrono::duration_cast<std::chrono::milliseconds>(second_look_share * whole);
        }
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
    AskedImages asked_;
    RunContext context_;
    std::vector<std::optional<cache::Trial>> finished_;
    std::vector<std::optional<cache::Trial>> first_answers_;
    std::vector<std::optional<ProblemResult>> results_;  ///< by problem
    std::size_t place_ = 0;                              ///< in `turns_`, of the problem at hand
    std::size_t prefetched_ = 0;                         ///< first place that no images were asked for
    std::deque<Look> looks_;                             ///< planned, in the order of their turns
    std::size_t looks_planned_ = 0;                      ///< first place that was not asked for a look
    std::size_t looks_done_ = 0;                         ///< place
    bool is_second_look_ = false;
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
