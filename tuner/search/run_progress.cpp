#include "tuner/search/run_progress.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace hone::tuner {
namespace {

constexpr double second_look_share = 0.3;  // of the time until then; as measured on an H200

}  // namespace

RunProgress::RunProgress(const SharedWork& work, std::size_t hand, const std::vector<bool>& is_open,
                         const RunContext& run, const ProgressSink& sink,
                         std::chrono::steady_clock::time_point start)
    : work_(work),
      hand_(hand),
      is_open_(is_open),
      run_(run),
      sink_(sink),
      start_(start),
      expected_(work.workload.problems.size()) {}

std::chrono::milliseconds RunProgress::now() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start_);
}

void RunProgress::begin_looks(const Agenda::Task& first) {
    if (std::exchange(are_looks_, true)) return;
    const std::vector<Problem>& problems = work_.workload.problems;
    std::vector<Problem> looks;
    if (first.is_own) looks.push_back(problems[first.problem]);
    for (const std::size_t index : work_.agenda.looks_ahead(hand_, problems.size()))
        looks.push_back(problems[index]);
    time_left_.emplace(looks);
}

void RunProgress::expect(const Agenda::Task& task) {
    if (!task.is_own || !time_left_->has_next()) time_left_->add(work_.workload.problems[task.problem]);
}

void RunProgress::answered(std::size_t problems) {
    progress_.answered = problems;
    report();
}

void RunProgress::begin(const Problem& problem, bool is_reused) {
    if (!is_reused) time_left_->begin(now());
    progress_.current = std::string(problem.family->name) + ' ' + dynamic_text(problem);
    progress_.current_done = 0;
    progress_.current_total = 0;
    progress_.best_us = 0;
    report();
}

void RunProgress::list(std::size_t candidates) {
    candidates_listed_ += candidates;
    progress_.current_total = candidates;
}

void RunProgress::candidate_done(double best_us) {
    ++progress_.candidates_done;
    ++progress_.current_done;
    if (std::isfinite(best_us)) progress_.best_us = best_us;
    time_left_->advance(progress_.current_done, progress_.current_total);
    report();
}

void RunProgress::problem_done() {
    ++progress_.problems_done;
    report();
}

void RunProgress::show(std::string what) {
    progress_.current = std::move(what);
    report();
}

/// Races that wait on this hand's list, or looks.
std::size_t RunProgress::waiting() const {
    if (are_looks_) return work_.agenda.looks_ahead(hand_, work_.workload.problems.size()).size();
    const auto is_open = [&](std::size_t index) { return is_open_[index]; };
    return static_cast<std::size_t>(std::ranges::count_if(work_.agenda.waiting(hand_), is_open));
}

/// Candidates of the races that wait.
std::size_t RunProgress::expected_in_races() {
    if (are_looks_) return 0;
    std::size_t sum = 0;
    for (const std::size_t index : work_.agenda.waiting(hand_)) {
        if (!is_open_[index]) continue;
        std::optional<std::size_t>& expected = expected_[index];
        if (!expected) expected = expected_candidates(work_.workload.problems[index], run_);
        sum += *expected;
    }
    return sum;
}

void RunProgress::report() {
    if (!sink_) return;
    progress_.problems_total = work_.agenda.count(hand_);
    progress_.candidates_total = candidates_listed_ + expected_in_races();
    time_left_->keep(waiting());
    progress_.left = time_left_->left(now());
    const bool is_to_be_continued = !are_looks_ && run_.options.effort == Effort::quick;
    if (progress_.left && is_to_be_continued) {
        const std::chrono::duration<double> whole = now() + *progress_.left;
        *progress_.left += std::chrono::duration_cast<std::chrono::milliseconds>(second_look_share * whole);
    }
    sink_(progress_);
}

}  // namespace hone::tuner
