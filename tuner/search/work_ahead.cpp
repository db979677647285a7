#include "tuner/search/work_ahead.h"

#include <algorithm>

#include "tuner/models/shards.h"
#include "tuner/search/second_look.h"

namespace hone::tuner {
namespace {

constexpr std::size_t problems_ahead = 12;  // that compilers work on besides the one that is measured

}  // namespace

WorkAhead::WorkAhead(SharedWork& work, std::size_t hand, const std::vector<bool>& is_open, RunContext& run,
                     std::chrono::steady_clock::time_point start)
    : work_(work),
      hand_(hand),
      problems_(work.workload.problems),
      is_open_(is_open),
      run_(run),
      start_(start),
      is_prefetched_(problems_.size()),
      is_known_asked_(problems_.size()) {}

void WorkAhead::begin() { ask_for_known({}, {}); }

std::chrono::milliseconds WorkAhead::now() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start_);
}

bool WorkAhead::are_all_tried() const {
    return run_.measurer.needs_images() && run_.measurer.provenance() != cache::Provenance::predicted;
}

bool WorkAhead::compilers_want_more() const {
    return run_.images.is_short_of_work() && run_.images.has_room();
}

std::optional<std::size_t> WorkAhead::first_ready() const {
    if (!work_.agenda.is_shared() || !run_.measurer.needs_images()) return std::nullopt;
    std::vector<std::size_t> next = work_.agenda.waiting(hand_);
    next.resize(std::min(next.size(), problems_ahead));
    const auto ready = std::ranges::find_if(next, [&](std::size_t index) {
        return !is_open_[index] || (is_prefetched_[index] && run_.images.is_ready(problems_[index]));
    });
    return ready == next.end() ? std::nullopt : std::optional(*ready);
}

void WorkAhead::begin_race(const Problem& problem, const CandidateList& candidates) {
    planned_ = std::min(planned_, now());
    prefetch(problem, candidates, until_planned());
    run_.asked.begin(problem);
    planned_ += tuning_time(problem);
    prefetch_races();
}

void WorkAhead::prefetch(const Problem& problem, const CandidateList& candidates,
                         std::chrono::milliseconds until) {
    run_.asked.add(problem, candidates.order);
    if (run_.measurer.needs_images())
        ask_for_images(problem, surely_tried(problem, candidates, run_.measurer), until);
}

void WorkAhead::ask_for_images(const Problem& problem, const std::vector<Candidate>& candidates,
                               std::chrono::milliseconds until) {
    std::vector<Candidate> needed;
    for (const Candidate& candidate : candidates) {
        const cache::Trial* known = run_.knowledge.valid_trial(problem, candidate);
        if (known == nullptr || !is_lasting(known->status)) needed.push_back(candidate);
    }
    run_.images.prefetch(problem, needed, until);
}

/// Compilers work on the next open problems while this one is measured, as far as their images have room.
void WorkAhead::prefetch_races() {
    std::chrono::milliseconds until = until_planned();
    const std::vector<std::size_t> next = work_.agenda.ahead(hand_, is_open_, problems_ahead);
    for (const std::size_t index : next) {
        if (!is_prefetched_[index]) {
            if (!run_.images.has_room()) return;
            is_prefetched_[index] = true;
            prefetch(problems_[index], list_candidates(problems_[index], run_), until);
        }
        until += tuning_time(problems_[index]);
    }
    if (next.size() < problems_ahead) plan_looks();
    ask_for_known(next, until);
}

/// Where compilers would soon have nothing to do: what is sure about the lists of problems behind the next
/// ones. Their images count as asked for when these have their turn, so that no list hangs on how fast
/// compilers are. Not where predictions alone choose: there few of a list are compiled.
void WorkAhead::ask_for_known(std::span<const std::size_t> next, std::chrono::milliseconds until) {
    if (!are_all_tried()) return;
    for (const std::size_t index : work_.agenda.waiting(hand_)) {
        if (!is_open_[index] || std::ranges::find(next, index) != next.end()) continue;
        if (!compilers_want_more() || run_.stop()) return;
        const Problem& problem = problems_[index];
        if (!is_known_asked_[index]) {
            is_known_asked_[index] = true;
            ask_for_images(problem, known_candidates(problem, run_), until);
        }
        until += tuning_time(problem);
    }
}

void WorkAhead::add_look(std::size_t index, const cache::Trial& winner) {
    winners_.insert_or_assign(index, winner);
    work_.agenda.add_look(hand_, index);
    ask_for_look(problems_[index], winner);
}

/// As ask_for_known(), behind all that is to be raced: most of who may challenge the winner is known already.
void WorkAhead::ask_for_look(const Problem& problem, const cache::Trial& winner) {
    if (!are_all_tried() || !compilers_want_more()) return;
    std::chrono::milliseconds until = until_planned();
    for (const std::size_t index : work_.agenda.waiting(hand_)) until += tuning_time(problems_[index]);
    ask_for_images(problem, likely_challengers(problem, winner, run_), until);
}

/// The winner of a problem that has been raced, then who may beat it.
std::optional<CandidateList> WorkAhead::plan_look(std::size_t index, const cache::Trial& winner) {
    const Problem& problem = problems_[index];
    const Candidate incumbent = *parse_candidate(*problem.family, winner.candidate);
    const std::vector<Candidate> found = challengers(problem, winner, run_);
    if (found.empty()) return std::nullopt;
    CandidateList list{.order = {incumbent},
                       .fallback = fallback(problem, run_.measurer.device().traits),
                       .incumbent = incumbent};
    list.order.insert(list.order.end(), found.begin(), found.end());
    list.first_culprit = list.order.size();
    prefetch(problem, list, {});
    return list;
}

/// Compilers work for the first looks while the last problems have their first turn, then as many looks ahead
/// as they were problems ahead. By what this hand has raced, not by the results: another hand may take a look
/// meanwhile.
void WorkAhead::plan_looks() {
    for (const std::size_t index : work_.agenda.looks_ahead(hand_, problems_ahead)) {
        if (looks_.contains(index)) continue;
        if (!looks_.empty() && !run_.images.has_room()) return;
        if (std::optional<CandidateList> look = plan_look(index, winners_.at(index))) {
            looks_.emplace(index, *std::move(look));
        } else {
            work_.agenda.drop_look(hand_, index);
            run_.images.release(problems_[index]);
        }
    }
}

/// What another hand has planned for it is not known here.
std::optional<CandidateList> WorkAhead::begin_look(std::size_t index, const cache::Trial& winner) {
    std::optional<CandidateList> look;
    if (auto planned = looks_.extract(index); planned) look = std::move(planned.mapped());
    if (!look) look = plan_look(index, winner);
    plan_looks();
    return look;
}

}  // namespace hone::tuner
