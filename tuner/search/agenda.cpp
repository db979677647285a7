#include "tuner/search/agenda.h"

#include <algorithm>
#include <utility>

namespace hone::tuner {
namespace {

/// The end of the list where all of it has an answer. Of a lost hand's list anything is to be done.
std::deque<std::size_t>::iterator last_open(std::deque<std::size_t>& races, bool is_lost,
                                            const std::vector<bool>& is_open) {
    for (auto place = races.end(); place != races.begin();) {
        --place;
        if (is_lost || is_open[*place]) return place;
    }
    return races.end();
}

}  // namespace

Agenda::Agenda(std::vector<std::vector<std::size_t>> lists, std::vector<std::chrono::milliseconds> costs)
    : hands_(lists.size()), costs_(std::move(costs)) {
    for (std::size_t i = 0; i < lists.size(); ++i) hands_[i].races.assign(lists[i].begin(), lists[i].end());
}

/// The one with most to race yet, by the time that this takes.
Agenda::Hand* Agenda::longest_other(std::vector<Hand>& hands, std::size_t hand,
                                    const std::vector<bool>& is_open) const {
    Hand* longest = nullptr;
    std::chrono::milliseconds most{-1};
    for (Hand& other : hands) {
        if (&other == &hands[hand] || last_open(other.races, other.is_lost, is_open) == other.races.end())
            continue;
        std::chrono::milliseconds time{};
        for (const std::size_t problem : other.races) {
            if (is_open[problem]) time += costs_[problem];
        }
        if (time > most) {
            longest = &other;
            most = time;
        }
    }
    return longest;
}

std::optional<std::size_t> Agenda::take_race(std::vector<Hand>& hands, std::size_t hand,
                                             const std::vector<bool>& is_open) const {
    std::deque<std::size_t>& own = hands[hand].races;
    if (!own.empty()) {
        const std::size_t problem = own.front();
        own.pop_front();
        return problem;
    }
    Hand* other = longest_other(hands, hand, is_open);
    if (other == nullptr) return std::nullopt;
    const auto place = last_open(other->races, other->is_lost, is_open);
    const std::size_t problem = *place;
    other->races.erase(place);
    return problem;
}

std::optional<Agenda::Task> Agenda::take(std::size_t number, const std::vector<bool>& is_open) {
    Hand& hand = hands_[number];
    const bool has_own = !hand.races.empty();
    if (const std::optional<std::size_t> problem = take_race(hands_, number, is_open)) {
        ++hand.taken;
        return Task{.turn = Turn::race, .problem = *problem, .is_own = has_own};
    }
    if (!hand.looks.empty()) {
        const Task task{.turn = Turn::look, .problem = hand.looks.front(), .is_own = true};
        hand.looks.pop_front();
        return task;
    }
    const auto other = std::ranges::max_element(hands_, {}, [](const Hand& any) { return any.looks.size(); });
    if (other->looks.empty()) return std::nullopt;
    const Task task{.turn = Turn::look, .problem = other->looks.back(), .is_own = false};
    other->looks.pop_back();
    return task;
}

/// Some hand, were it lost now. One that has not begun yet may be, with answers that nobody else would give.
bool Agenda::may_leave_something() const {
    return std::ranges::any_of(
        hands_, [](const Hand& hand) { return hand.at_work || (!hand.is_lost && !hand.races.empty()); });
}

std::optional<Agenda::Task> Agenda::next(std::size_t number, const std::vector<bool>& is_open,
                                         std::optional<std::size_t> first) {
    std::unique_lock lock(mutex_);
    Hand& hand = hands_[number];
    hand.at_work.reset();
    changed_.notify_all();
    if (const auto place = std::ranges::find(hand.races, first); place != hand.races.end())
        std::rotate(hand.races.begin(), place, place + 1);
    for (;;) {
        hand.at_work = take(number, is_open);
        if (hand.at_work) return hand.at_work;
        if (!may_leave_something()) return std::nullopt;
        changed_.wait(lock);
    }
}

std::optional<std::size_t> Agenda::next_own(std::size_t number) {
    const std::scoped_lock lock(mutex_);
    Hand& hand = hands_[number];
    hand.at_work.reset();
    changed_.notify_all();
    if (hand.races.empty()) return std::nullopt;
    const std::size_t problem = hand.races.front();
    hand.races.pop_front();
    ++hand.taken;
    return problem;
}

void Agenda::add_look(std::size_t hand, std::size_t problem) {
    const std::scoped_lock lock(mutex_);
    hands_[hand].looks.push_back(problem);
}

void Agenda::drop_look(std::size_t hand, std::size_t problem) {
    const std::scoped_lock lock(mutex_);
    std::erase(hands_[hand].looks, problem);
}

bool Agenda::leave(std::size_t number) {
    const std::scoped_lock lock(mutex_);
    Hand& hand = hands_[number];
    hand.is_lost = true;
    if (const std::optional<Task> task = std::exchange(hand.at_work, std::nullopt)) {
        if (task->turn == Turn::race) --hand.taken;
        (task->turn == Turn::race ? hand.races : hand.looks).push_front(task->problem);
    }
    changed_.notify_all();
    return !std::ranges::all_of(hands_, &Hand::is_lost);
}

void Agenda::meet(std::size_t hand, Meeting meeting) {
    std::unique_lock lock(mutex_);
    hands_[hand].met = meeting;
    changed_.notify_all();
    const auto is_here = [&](const Hand& other) { return other.is_lost || other.met >= meeting; };
    changed_.wait(lock, [&] { return std::ranges::all_of(hands_, is_here); });
}

std::vector<std::size_t> Agenda::ahead(std::size_t number, const std::vector<bool>& is_open,
                                       std::size_t most) const {
    const std::scoped_lock lock(mutex_);
    std::vector<Hand> hands = hands_;
    std::vector<std::size_t> problems;
    while (problems.size() < most) {
        const std::optional<std::size_t> problem = take_race(hands, number, is_open);
        if (!problem) break;
        if (is_open[*problem]) problems.push_back(*problem);
    }
    return problems;
}

std::vector<std::size_t> Agenda::looks_ahead(std::size_t number, std::size_t most) const {
    const std::scoped_lock lock(mutex_);
    const std::deque<std::size_t>& looks = hands_[number].looks;
    const auto count = static_cast<std::ptrdiff_t>(std::min(most, looks.size()));
    return {looks.begin(), looks.begin() + count};
}

std::vector<std::size_t> Agenda::waiting(std::size_t hand) const {
    const std::scoped_lock lock(mutex_);
    return {hands_[hand].races.begin(), hands_[hand].races.end()};
}

std::size_t Agenda::count(std::size_t hand) const {
    const std::scoped_lock lock(mutex_);
    return hands_[hand].taken + hands_[hand].races.size();
}

void Agenda::tell(std::size_t hand, const cache::Trial& trial) {
    const std::scoped_lock lock(mutex_);
    news_.push_back({.from = hand, .trial = trial});
}

std::vector<cache::Trial> Agenda::news(std::size_t hand) {
    const std::scoped_lock lock(mutex_);
    std::vector<cache::Trial> trials;
    for (; hands_[hand].told < news_.size(); ++hands_[hand].told) {
        const News& one = news_[hands_[hand].told];
        if (one.from != hand) trials.push_back(one.trial);
    }
    return trials;
}

void Agenda::skip_news(std::size_t hand) {
    const std::scoped_lock lock(mutex_);
    hands_[hand].told = news_.size();
}

}  // namespace hone::tuner
