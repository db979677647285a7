#include "tuner/search/tuner.h"

#include <algorithm>
#include <map>
#include <span>

#include <fmt/format.h>

#include "kernel_templates/space.h"
#include "tuner/search/covering.h"
#include "tuner/search/problem_tuner.h"
#include "tuner/search/run_progress.h"
#include "tuner/search/shared_work.h"
#include "tuner/search/work_ahead.h"

namespace hone::tuner {
namespace {

using Steady = std::chrono::steady_clock;

/// For what a hand knows from the cache: what others tell from now on comes as news, what stands there
/// already does not.
cache::Cache& read_after_news(SharedWork& work, std::size_t hand, cache::Cache& cache) {
    work.agenda.skip_news(hand);
    return cache;
}

class Run {
  public:
    Run(SharedWork& work, std::size_t hand, const TuneOptions& options, Measurer& measurer,
        ImageSource& images, cache::Cache& cache, const ProgressSink& progress, const std::atomic<bool>& stop)
        : work_(work),
          hand_(hand),
          workload_(work.workload),
          options_(options),
          interrupted_(stop),
          knowledge_(read_after_news(work, hand, cache), measurer.device(), measurer.provenance()),
          context_{options,
                   measurer,
                   images,
                   cache,
                   knowledge_,
                   work.predictions,
                   work.asked,
                   [this] { return stop_reason() != StopReason::finished; },
                   [this](double best_us) { progress_.candidate_done(best_us); }},
          finished_(finished_winners()),
          is_open_(open_places()),
          ahead_(work, hand, is_open_, context_, start_),
          progress_(work, hand, is_open_, context_, progress, start_) {
        if (work.agenda.is_shared())
            context_.tell = [this](const cache::Trial& trial) { work_.agenda.tell(hand_, trial); };
    }

    TuneResult run() {
        const std::int64_t compiled_before = context_.images.compiled();
        const std::chrono::nanoseconds busy_before = context_.measurer.busy();
        const std::chrono::nanoseconds waited_before = context_.images.waited();
        work_as_long_as_it_lasts();
        for (SharedWork::Result& result : work_.results) {
            if (result.result && result.hand == hand_) result_.problems.push_back(*std::move(result.result));
        }
        result_.stopped = all_finished() && is_covered_ ? StopReason::finished : stop_reason();
        result_.compiles = context_.images.compiled() - compiled_before;
        using std::chrono::duration_cast;
        using std::chrono::milliseconds;
        result_.measuring = duration_cast<milliseconds>(context_.measurer.busy() - busy_before);
        result_.waiting = duration_cast<milliseconds>(context_.images.waited() - waited_before);
        result_.elapsed = duration_cast<milliseconds>(Steady::now() - start_);
        return std::move(result_);
    }

  private:
    [[nodiscard]] const std::vector<std::size_t>& list() const { return work_.lists[hand_]; }
    [[nodiscard]] std::optional<ProblemResult>& result_of(std::size_t index) const {
        return work_.results[index].result;
    }

    [[nodiscard]] StopReason stop_reason() const {
        if (interrupted_) return StopReason::interrupted;
        if (options_.budget && Steady::now() - start_ >= *options_.budget) return StopReason::budget;
        if (answered_at_ && Steady::now() - *answered_at_ >= *options_.after_answers)
            return StopReason::answered;
        return StopReason::finished;
    }

    [[nodiscard]] bool all_finished() const { return problems_completed_ == problems_taken_; }

    /// Of this hand's list.
    [[nodiscard]] std::vector<Problem> open_problems() const {
        std::vector<Problem> open;
        for (const std::size_t index : list()) {
            if (is_open_[index]) open.push_back(workload_.problems[index]);
        }
        return open;
    }

    /// One that is lost waits until the others have done what it leaves: they may have another look at what
    /// it has raced.
    void work_as_long_as_it_lasts() {
        try {
            begin();
            work_off();
        } catch (const std::exception& error) {
            if (is_covering_) throw;  // what it covers nobody else does
            result_.lost = left_to_others(work_, hand_, error);
        }
        work_.agenda.meet(hand_, Agenda::Meeting::all_done);
        if (result_.lost.empty() && !work_.is_cleared.exchange(true)) drop_lost_images();
    }

    void begin() {
        const std::vector<Problem> open = open_problems();
        if (!open.empty()) context_.measurer.get_ready();
        if (options_.lower_trials && !open.empty()) knowledge_.add_lower(options_.lower_trials());
        progress_.expect_races(open);
        ahead_.begin();
        for (std::size_t place = 0; place < list().size(); ++place) {
            const std::size_t index = list()[place];
            if (is_open_[index]) prepare_list(workload_.problems[index], place, context_);
        }
        answer_first();
    }

    void learn_news() {
        for (const cache::Trial& trial : work_.agenda.news(hand_)) knowledge_.learn_told(trial);
    }

    void work_off() {
        while (const std::optional<Agenda::Task> task = next_task()) {
            learn_news();
            if (task->turn == Agenda::Turn::race) take_turn(*task);
            if (task->turn == Agenda::Turn::look) look_again(*task);
        }
        choose_few_kernels();
    }

    /// Who is stopped has its own problems left to say something about, looks at none again.
    [[nodiscard]] std::optional<Agenda::Task> next_task() {
        std::optional<Agenda::Task> task;
        if (stop_reason() == StopReason::finished)
            task = work_.agenda.next(hand_, is_open_, ahead_.first_ready());
        if (!task) {
            const std::optional<std::size_t> own = work_.agenda.next_own(hand_);
            if (own) task = Agenda::Task{.problem = *own};
        }
        return task;
    }

    void take_turn(const Agenda::Task& task) {
        ++problems_taken_;
        work_.results[task.problem].hand = hand_;
        if (stop_reason() != StopReason::finished && is_open_[task.problem]) {
            keep_first_answer(task.problem);
            return;
        }
        if (is_open_[task.problem]) progress_.expect(task);
        tune_problem(task.problem);
        context_.images.release(workload_.problems[task.problem]);
        if (!is_worth_another_look(result_of(task.problem))) return;
        ahead_.add_look(task.problem, *result_of(task.problem)->winner);
    }

    [[nodiscard]] std::vector<std::optional<cache::Trial>> finished_winners() const {
        std::vector<std::optional<cache::Trial>> finished;
        for (const Problem& problem : workload_.problems)
            finished.push_back(options_.retune ? std::nullopt : knowledge_.finished_winner(problem));
        return finished;
    }

    [[nodiscard]] std::vector<bool> open_places() const {
        std::vector<bool> open;
        for (const std::optional<cache::Trial>& finished : finished_) open.push_back(!finished);
        return open;
    }

    /// Where times are known before images, every problem has an answer at once; the races refine them.
    void answer_first() {
        std::size_t answered = 0;
        first_answers_.resize(workload_.problems.size());
        for (const std::size_t index : list()) {
            if (finished_[index] || stop_reason() != StopReason::finished) continue;
            first_answers_[index] = predicted_answer(workload_.problems[index], context_);
            if (!first_answers_[index]) continue;
            context_.cache.store(*first_answers_[index]);
            ++answered;
        }
        if (answered == 0) return;
        progress_.answered(answered);
        if (options_.after_answers) answered_at_ = Steady::now();
    }

    /// A problem that is not reached.
    void keep_first_answer(std::size_t index) {
        if (!first_answers_[index]) return;
        result_of(index) = {
            .problem = workload_.problems[index], .winner = first_answers_[index], .ties = {}, .failure = {}};
    }

    void tune_problem(std::size_t index) {
        const Problem& problem = workload_.problems[index];
        progress_.begin(problem, finished_[index].has_value());
        ProblemResult result = finished_[index] ? reuse(problem, *finished_[index]) : race(index);
        if (!finished_[index]) progress_.end();
        if (!result.winner && stop_reason() != StopReason::finished) result.winner = first_answers_[index];
        const bool raced_to_the_end = result.winner && result.winner->stage == cache::Stage::final_round;
        if (raced_to_the_end || stop_reason() == StopReason::finished) ++problems_completed_;
        result_of(index) = std::move(result);
        progress_.problem_done();
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
        context_.measurer.expect_problem(problem);
        CandidateList candidates = list_candidates(problem, context_);
        progress_.list(candidates.order.size());
        ahead_.begin_race(problem, candidates);
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

    void look_again(const Agenda::Task& task) {
        if (stop_reason() != StopReason::finished) return;
        take_look(task);
        context_.images.release(workload_.problems[task.problem]);
    }

    void take_look(const Agenda::Task& task) {
        progress_.begin_looks(task);
        const std::optional<CandidateList> look =
            ahead_.begin_look(task.problem, *result_of(task.problem)->winner);
        if (!look) return;
        progress_.expect(task);
        progress_.begin(workload_.problems[task.problem], false);
        challenge_winner(task.problem, *look);
        progress_.end();
    }

    void challenge_winner(std::size_t index, const CandidateList& look) {
        ProblemResult& result = *result_of(index);
        progress_.list(look.order.size());
        ProblemTuner tuner(result.problem, look, context_);
        std::optional<ProblemResult> better = tuner.challenge();
        result_.measurements += tuner.launched();
        const cache::Trial* again = knowledge_.valid_trial(result.problem, *look.incumbent);
        if (again != nullptr && is_lasting(again->status)) better = race(index);  // it failed this time
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

    /// Sizes without a winner stay without. Each hand takes a static part, whoever raced its sizes.
    void choose_few_kernels() {
        if (!options_.kernels) return;
        is_covering_ = true;
        work_.agenda.meet(hand_, Agenda::Meeting::all_raced);
        learn_news();
        std::map<std::string, std::vector<ProblemResult*>> shapes;
        for (SharedWork::Result& result : work_.results) {
            if (result.result && result.result->winner)
                shapes[to_string(static_part(result.result->problem))].push_back(&*result.result);
        }
        const std::vector<std::pair<std::string, std::vector<ProblemResult*>>> parts(shapes.begin(),
                                                                                     shapes.end());
        work_.agenda.meet(hand_, Agenda::Meeting::parts_listed);
        for (std::size_t i = work_.next_cover++; i < parts.size(); i = work_.next_cover++) {
            is_covered_ = stop_reason() == StopReason::finished;
            if (!is_covered_) return;
            const std::vector<ProblemResult*>& sizes = parts[i].second;
            progress_.show(
                fmt::format("kernels for {} sizes of {}", sizes.size(), sizes.front()->problem.family->name));
            const CoverResult& cover =
                result_.covers.emplace_back(cover_sizes(sizes, *options_.kernels, context_));
            result_.measurements += cover.measurements;
            is_covered_ = cover.failure.empty() || stop_reason() == StopReason::finished;
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

    SharedWork& work_;
    const std::size_t hand_;
    const Workload& workload_;
    const TuneOptions& options_;
    const std::atomic<bool>& interrupted_;
    const Steady::time_point start_ = Steady::now();
    std::optional<Steady::time_point> answered_at_;
    Knowledge knowledge_;
    RunContext context_;
    const std::vector<std::optional<cache::Trial>> finished_;  ///< by problem, as the next two
    const std::vector<bool> is_open_;                          ///< not finished
    std::vector<std::optional<cache::Trial>> first_answers_;
    WorkAhead ahead_;
    RunProgress progress_;
    TuneResult result_;
    std::size_t problems_taken_ = 0;
    std::size_t problems_completed_ = 0;
    bool is_covering_ = false;
    bool is_covered_ = true;  ///< unless that was stopped
};

}  // namespace

TuneResult tune(SharedWork& work, std::size_t hand, const TuneOptions& options, Measurer& measurer,
                ImageSource& images, cache::Cache& cache, const ProgressSink& progress,
                const std::atomic<bool>& stop) {
    std::optional<Run> run;
    try {
        run.emplace(work, hand, options, measurer, images, cache, progress, stop);
    } catch (const std::exception& error) {
        return {.problems = {}, .covers = {}, .lost = left_to_others(work, hand, error)};
    }
    return run->run();
}

TuneResult tune(const Workload& workload, const TuneOptions& options, Measurer& measurer, ImageSource& images,
                cache::Cache& cache, const ProgressSink& progress, const std::atomic<bool>& stop) {
    SharedWork work(workload, 1, measurer.device().traits);
    return tune(work, 0, options, measurer, images, cache, progress, stop);
}

}  // namespace hone::tuner
