#include "tuner/search/tuner.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <tuple>

#include <fmt/format.h>

#include "kernel_templates/space.h"
#include "runtime/compile/compile_time.h"
#include "tuner/models/shards.h"
#include "tuner/search/covering.h"
#include "tuner/search/problem_tuner.h"
#include "tuner/search/second_look.h"
#include "tuner/search/shared_work.h"
#include "tuner/search/time_left.h"

namespace hone::tuner {
namespace {

using Steady = std::chrono::steady_clock;

constexpr std::size_t problems_ahead = 12;  // that compilers work on besides the one that is measured
constexpr double second_look_share = 0.3;   // of the time until then; as measured on an H200

/// The last, the first, the last but one, the second and so on.
std::vector<std::size_t> from_both_ends(std::size_t count) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < count; ++i) order.push_back(i % 2 == 0 ? count - 1 - i / 2 : i / 2);
    return order;
}

/// For an image of the family's slowest template.
std::chrono::microseconds longest_compile(const Family& family) {
    std::chrono::microseconds longest{};
    for (const Variant* variant : family.variants)
        longest = std::max(longest, runtime::compile_time(variant->source));
    return longest;
}

/// The last sizes of all shapes, then their first ones, their last but one and so on. So a neighbour's winner
/// is known by the time that a size has its turn, and images made for it have long been asked for; calls that
/// take the GPU long give compilers time for the images of short ones, from the start on; and no long one is
/// left for the end. In each round those come first that have their images first. A capture's problems stand
/// in their order already.
std::vector<std::size_t> in_turns(const Workload& workload, const std::vector<std::size_t>& hand) {
    if (!workload.captured.empty()) return hand;
    std::map<std::string, std::vector<std::size_t>> parts;
    for (const std::size_t index : hand)
        parts[to_string(static_part(workload.problems[index]))].push_back(index);
    std::vector<std::tuple<std::size_t, std::chrono::microseconds, std::size_t>> turns;  // round, and index
    for (const auto& [_, sizes] : parts) {
        std::size_t round = 0;
        for (const std::size_t place : from_both_ends(sizes.size())) {
            const std::size_t index = sizes[place];
            turns.emplace_back(round++, longest_compile(*workload.problems[index].family), index);
        }
    }
    std::ranges::sort(turns);
    std::vector<std::size_t> order;
    for (const auto& [round, compile, index] : turns) order.push_back(index);
    return order;
}

std::vector<std::vector<std::size_t>> lists_of(const Workload& workload, std::size_t most_hands) {
    std::vector<std::vector<std::size_t>> lists;
    for (const std::vector<std::size_t>& hand : dealt(workload, most_hands))
        lists.push_back(in_turns(workload, hand));
    if (lists.empty()) lists.emplace_back();
    return lists;
}

std::vector<std::chrono::milliseconds> costs_of(const Workload& workload) {
    std::vector<std::chrono::milliseconds> costs;
    for (const Problem& problem : workload.problems) costs.push_back(tuning_time(problem));
    return costs;
}

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
          progress_sink_(progress),
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
                   [this](double best_us) { candidate_done(best_us); }} {
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
        result_.elapsed = now();
        return std::move(result_);
    }

  private:
    [[nodiscard]] const DeviceTraits& traits() const { return context_.measurer.device().traits; }
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
        find_open_problems();
        const std::vector<Problem> open = open_problems();
        if (!open.empty()) context_.measurer.get_ready();
        if (options_.lower_trials && !open.empty()) knowledge_.add_lower(options_.lower_trials());
        time_left_.emplace(open);
        ask_for_known({}, {});
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
        if (stop_reason() == StopReason::finished) task = work_.agenda.next(hand_, is_open_, first_ready());
        if (!task) {
            const std::optional<std::size_t> own = work_.agenda.next_own(hand_);
            if (own) task = Agenda::Task{.problem = *own};
        }
        return task;
    }

    /// Of this hand's next problems the first whose images have been asked for and are there. Where one GPU
    /// tunes alone the order stays: what it lists would hang on how fast compilers are, where several share a
    /// workload it does already.
    [[nodiscard]] std::optional<std::size_t> first_ready() const {
        if (!work_.agenda.is_shared() || !context_.measurer.needs_images()) return std::nullopt;
        std::vector<std::size_t> next = work_.agenda.waiting(hand_);
        next.resize(std::min(next.size(), problems_ahead));
        const auto ready = std::ranges::find_if(next, [&](std::size_t index) {
            return !is_open_[index] ||
                   (prefetched_[index] && context_.images.is_ready(workload_.problems[index]));
        });
        return ready == next.end() ? std::nullopt : std::optional(*ready);
    }

    void take_turn(const Agenda::Task& task) {
        ++problems_taken_;
        work_.results[task.problem].hand = hand_;
        if (stop_reason() != StopReason::finished && is_open_[task.problem]) {
            keep_first_answer(task.problem);
            return;
        }
        if (is_open_[task.problem]) expect(task);
        tune_problem(task.problem);
        context_.images.release(workload_.problems[task.problem]);
        if (!is_worth_another_look(result_of(task.problem))) return;
        winners_.insert_or_assign(task.problem, *result_of(task.problem)->winner);
        work_.agenda.add_look(hand_, task.problem);
        ask_for_look(workload_.problems[task.problem], winners_.at(task.problem));
    }

    /// What is taken from others was not foreseen.
    void expect(const Agenda::Task& task) {
        if (!task.is_own || !time_left_->has_next()) time_left_->add(workload_.problems[task.problem]);
    }

    [[nodiscard]] std::chrono::milliseconds now() const {
        return std::chrono::duration_cast<std::chrono::milliseconds>(Steady::now() - start_);
    }

    void find_open_problems() {
        for (const Problem& problem : workload_.problems) {
            finished_.push_back(options_.retune ? std::nullopt : knowledge_.finished_winner(problem));
            is_open_.push_back(!finished_.back());
        }
        expected_.resize(finished_.size());
        prefetched_.resize(finished_.size());
        is_known_asked_.resize(finished_.size());
    }

    /// Where times are known before images, every problem has an answer at once; the races refine them.
    void answer_first() {
        first_answers_.resize(workload_.problems.size());
        for (const std::size_t index : list()) {
            if (finished_[index] || stop_reason() != StopReason::finished) continue;
            first_answers_[index] = predicted_answer(workload_.problems[index], context_);
            if (!first_answers_[index]) continue;
            context_.cache.store(*first_answers_[index]);
            ++progress_.answered;
        }
        if (progress_.answered > 0) report();
        if (progress_.answered > 0 && options_.after_answers) answered_at_ = Steady::now();
    }

    /// A problem that is not reached.
    void keep_first_answer(std::size_t index) {
        if (!first_answers_[index]) return;
        result_of(index) = {
            .problem = workload_.problems[index], .winner = first_answers_[index], .ties = {}, .failure = {}};
    }

    void tune_problem(std::size_t index) {
        const Problem& problem = workload_.problems[index];
        if (!finished_[index]) time_left_->begin(now());
        begin_progress(problem, 0);
        ProblemResult result = finished_[index] ? reuse(problem, *finished_[index]) : race(index);
        if (!finished_[index]) time_left_->end(now());
        if (!result.winner && stop_reason() != StopReason::finished) result.winner = first_answers_[index];
        const bool raced_to_the_end = result.winner && result.winner->stage == cache::Stage::final_round;
        if (raced_to_the_end || stop_reason() == StopReason::finished) ++problems_completed_;
        ++progress_.problems_done;
        result_of(index) = std::move(result);
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
        context_.measurer.expect_problem(problem);
        CandidateList candidates = list_candidates(problem, context_);
        candidates_listed_ += candidates.order.size();
        progress_.current_total = candidates.order.size();
        planned_ = std::min(planned_, now());
        prefetch(problem, candidates, until_planned());
        context_.asked.begin(problem);
        planned_ += tuning_time(problem);
        prefetch_ahead(until_planned());
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

    /// The winner of a problem that has been raced, then who may beat it; nothing where nobody may.
    [[nodiscard]] std::optional<CandidateList> plan_look(std::size_t index, const cache::Trial& trial) {
        const Problem& problem = workload_.problems[index];
        const Candidate winner = *parse_candidate(*problem.family, trial.candidate);
        const std::vector<Candidate> found = challengers(problem, trial, context_);
        if (found.empty()) return std::nullopt;
        CandidateList list{.order = {winner}, .fallback = fallback(problem, traits()), .incumbent = winner};
        list.order.insert(list.order.end(), found.begin(), found.end());
        list.first_culprit = list.order.size();
        prefetch(problem, list, {});
        return list;
    }

    /// Compilers work for the first looks while the last problems have their first turn, then as many looks
    /// ahead as they were problems ahead. By what this hand has raced, not by the results: another hand may
    /// take a look meanwhile.
    void plan_looks() {
        for (const std::size_t index : work_.agenda.looks_ahead(hand_, problems_ahead)) {
            if (looks_.contains(index)) continue;
            if (!looks_.empty() && !context_.images.has_room()) return;
            std::optional<CandidateList> look = plan_look(index, winners_.at(index));
            if (!look) drop_look(index);
            if (look) looks_.emplace(index, *std::move(look));
        }
    }

    void drop_look(std::size_t index) {
        work_.agenda.drop_look(hand_, index);
        context_.images.release(workload_.problems[index]);
    }

    void look_again(const Agenda::Task& task) {
        if (stop_reason() != StopReason::finished) return;
        take_look(task);
        context_.images.release(workload_.problems[task.problem]);
    }

    /// What another hand has planned for it is not known here.
    void take_look(const Agenda::Task& task) {
        if (!std::exchange(is_second_look_, true)) begin_looks(task);
        std::optional<CandidateList> look;
        if (const auto planned = looks_.extract(task.problem); planned) look = std::move(planned.mapped());
        if (!look) look = plan_look(task.problem, *result_of(task.problem)->winner);
        plan_looks();
        if (!look) return;
        expect(task);
        time_left_->begin(now());
        candidates_listed_ += look->order.size();
        challenge_winner(task.problem, *look);
        time_left_->end(now());
    }

    void begin_looks(const Agenda::Task& first) {
        std::vector<Problem> looks;
        if (first.is_own) looks.push_back(workload_.problems[first.problem]);
        for (const std::size_t index : work_.agenda.looks_ahead(hand_, workload_.problems.size()))
            looks.push_back(workload_.problems[index]);
        time_left_.emplace(looks);
    }

    void challenge_winner(std::size_t index, const CandidateList& look) {
        ProblemResult& result = *result_of(index);
        begin_progress(result.problem, look.order.size());
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
            progress_.current =
                fmt::format("kernels for {} sizes of {}", sizes.size(), sizes.front()->problem.family->name);
            report();
            const CoverResult& cover =
                result_.covers.emplace_back(cover_sizes(sizes, *options_.kernels, context_));
            result_.measurements += cover.measurements;
            is_covered_ = cover.failure.empty() || stop_reason() == StopReason::finished;
        }
    }

    void prefetch(const Problem& problem, const CandidateList& candidates, std::chrono::milliseconds until) {
        context_.asked.add(problem, candidates.order);
        if (context_.measurer.needs_images())
            ask_for_images(problem, surely_tried(problem, candidates, context_.measurer), until);
    }

    void ask_for_images(const Problem& problem, const std::vector<Candidate>& candidates,
                        std::chrono::milliseconds until) {
        std::vector<Candidate> needed;
        for (const Candidate& candidate : candidates) {
            const cache::Trial* known = knowledge_.valid_trial(problem, candidate);
            if (known == nullptr || !is_lasting(known->status)) needed.push_back(candidate);
        }
        context_.images.prefetch(problem, needed, until);
    }

    /// Until what comes next would have its turn, had nothing been waited for so far: negative where
    /// compilers are behind. Images of all problems are asked for by this one plan, whenever that is, so that
    /// those that are needed first are made first.
    [[nodiscard]] std::chrono::milliseconds until_planned() const { return planned_ - now(); }

    /// Compilers work on the next open problems while this one is measured, as far as their images have room.
    void prefetch_ahead(std::chrono::milliseconds until) {
        const std::vector<std::size_t> next = work_.agenda.ahead(hand_, is_open_, problems_ahead);
        for (const std::size_t index : next) {
            if (!prefetched_[index]) {
                if (!context_.images.has_room()) return;
                prefetched_[index] = true;
                prefetch(workload_.problems[index], list_candidates(workload_.problems[index], context_),
                         until);
            }
            until += tuning_time(workload_.problems[index]);
        }
        if (next.size() < problems_ahead) plan_looks();
        ask_for_known(next, until);
    }

    [[nodiscard]] bool are_all_tried() const {
        return context_.measurer.needs_images() &&
               context_.measurer.provenance() != cache::Provenance::predicted;
    }
    [[nodiscard]] bool compilers_want_more() const {
        return context_.images.is_short_of_work() && context_.images.has_room();
    }

    /// Where compilers would soon have nothing to do: what is sure about the lists of problems behind the
    /// next ones. Their images count as asked for when these have their turn, so that no list hangs on how
    /// fast compilers are. Not where predictions alone choose: there few of a list are compiled.
    void ask_for_known(std::span<const std::size_t> next, std::chrono::milliseconds until) {
        if (!are_all_tried()) return;
        for (const std::size_t index : work_.agenda.waiting(hand_)) {
            if (!is_open_[index] || std::ranges::find(next, index) != next.end()) continue;
            if (!compilers_want_more() || stop_reason() != StopReason::finished) return;
            const Problem& problem = workload_.problems[index];
            if (!is_known_asked_[index]) {
                is_known_asked_[index] = true;
                ask_for_images(problem, known_candidates(problem, context_), until);
            }
            until += tuning_time(problem);
        }
    }

    /// The same for a second look, behind all that is to be raced: most of who may challenge the winner is
    /// known already.
    void ask_for_look(const Problem& problem, const cache::Trial& winner) {
        if (!are_all_tried() || !compilers_want_more()) return;
        std::chrono::milliseconds until = until_planned();
        for (const std::size_t index : work_.agenda.waiting(hand_))
            until += tuning_time(workload_.problems[index]);
        ask_for_images(problem, likely_challengers(problem, winner, context_), until);
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

    /// Races that wait on this hand's list, or looks.
    [[nodiscard]] std::size_t waiting() const {
        if (is_second_look_) return work_.agenda.looks_ahead(hand_, workload_.problems.size()).size();
        const auto is_open = [&](std::size_t index) { return is_open_[index]; };
        return static_cast<std::size_t>(std::ranges::count_if(work_.agenda.waiting(hand_), is_open));
    }

    /// Candidates of the races that wait.
    [[nodiscard]] std::size_t expected_in_races() {
        if (is_second_look_) return 0;
        std::size_t sum = 0;
        for (const std::size_t index : work_.agenda.waiting(hand_)) {
            if (!is_open_[index]) continue;
            std::optional<std::size_t>& expected = expected_[index];
            if (!expected) expected = expected_candidates(workload_.problems[index], context_);
            sum += *expected;
        }
        return sum;
    }

    void report() {
        if (!progress_sink_) return;
        progress_.problems_total = work_.agenda.count(hand_);
        progress_.candidates_total = candidates_listed_ + expected_in_races();
        time_left_->keep(waiting());
        progress_.left = time_left_->left(now());
        const bool is_to_be_continued = !is_second_look_ && options_.effort == Effort::quick;
        if (progress_.left && is_to_be_continued) {
            const std::chrono::duration<double> whole = now() + *progress_.left;
            *progress_.left +=
                std::chrono::duration_cast<std::chrono::milliseconds>(second_look_share * whole);
        }
        progress_sink_(progress_);
    }

    SharedWork& work_;
    const std::size_t hand_;
    const Workload& workload_;
    const TuneOptions& options_;
    const ProgressSink& progress_sink_;
    const std::atomic<bool>& interrupted_;
    const Steady::time_point start_ = Steady::now();
    std::optional<Steady::time_point> answered_at_;
    Knowledge knowledge_;
    RunContext context_;
    std::vector<std::optional<cache::Trial>> finished_;  ///< by problem, as all that follow
    std::vector<bool> is_open_;                          ///< not finished
    std::vector<std::optional<cache::Trial>> first_answers_;
    std::vector<std::optional<std::size_t>> expected_;  ///< candidates, before there is a list
    std::vector<bool> prefetched_;
    std::vector<bool> is_known_asked_;             ///< images of its known candidates, ahead of its list
    std::map<std::size_t, cache::Trial> winners_;  ///< of what this hand has raced and is to look at again
    std::map<std::size_t, CandidateList> looks_;   ///< planned ones
    bool is_second_look_ = false;
    Progress progress_;
    std::size_t candidates_listed_ = 0;
    std::optional<TimeLeft> time_left_;    ///< of the open problems
    std::chrono::milliseconds planned_{};  ///< turn of the problem after this one; see until_planned()
    TuneResult result_;
    std::size_t problems_taken_ = 0;
    std::size_t problems_completed_ = 0;
    bool is_covering_ = false;
    bool is_covered_ = true;  ///< unless that was stopped
};

}  // namespace

SharedWork::SharedWork(const Workload& of, std::size_t most_hands, const DeviceTraits& traits)
    : workload(of),
      lists(lists_of(of, most_hands)),
      agenda(lists, costs_of(of)),
      predictions(traits),
      asked(traits.arch()),
      results(of.problems.size()) {}

std::string left_to_others(SharedWork& work, std::size_t hand, const std::exception& error) {
    if (!work.agenda.leave(hand)) throw;
    return error.what();
}

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
