#include "tuner/search/time_left.h"

#include <algorithm>
#include <cstdlib>

#include "kernel_templates/family.h"

namespace hone::tuner {
namespace {

constexpr double smallest_share = 0.1;  // of a problem, before its own pace counts

}  // namespace

TimeLeft::TimeLeft(std::span<const Problem> problems) {
    for (const Problem& problem : problems) kinds_.push_back(kind_of(problem));
}

TimeLeft::Kind TimeLeft::kind_of(const Problem& problem) {
    const Problem part = static_part(problem);
    auto found = std::ranges::find(parts_, part, &std::pair<Problem, int>::first);
    if (found == parts_.end()) found = parts_.insert(parts_.end(), {part, 0});
    return {std::string(problem.family->name), found->second++};
}

void TimeLeft::add(const Problem& problem) {
    kinds_.insert(kinds_.begin() + static_cast<std::ptrdiff_t>(next_), kind_of(problem));
}

void TimeLeft::keep(std::size_t waiting) { kinds_.resize(std::min(kinds_.size(), next_ + waiting)); }

void TimeLeft::begin(Milliseconds now) {
    began_ = now;
    share_done_ = 0;
    is_running_ = true;
    ++next_;
}

void TimeLeft::advance(std::size_t done, std::size_t total) {
    share_done_ = total > 0 ? static_cast<double>(done) / static_cast<double>(total) : 0;
}

void TimeLeft::end(Milliseconds now) {
    Spent& spent = spent_[kinds_[next_ - 1]];
    spent.ms += static_cast<double>((now - began_).count());
    ++spent.problems;
    is_running_ = false;
}

/// What ended says something about it: the first of a static part, which has images to wait for, about firsts
/// alone.
bool TimeLeft::is_known(const Kind& kind) const {
    const auto later = spent_.lower_bound({kind.first, 1});
    return spent_.contains(kind) || (later != spent_.end() && later->first.first == kind.first);
}

/// Of this kind; of the family's nearest place where none of it has ended, no first if possible; else of all.
double TimeLeft::mean_ms(const Kind& kind) const {
    Spent all;
    const Spent* nearest = nullptr;
    std::pair<bool, int> least_distance;
    for (const auto& [other, spent] : spent_) {
        all.ms += spent.ms;
        all.problems += spent.problems;
        const bool is_unlike = (other.second == 0) != (kind.second == 0);
        const std::pair distance(is_unlike, std::abs(other.second - kind.second));
        if (other.first != kind.first || (nearest != nullptr && distance > least_distance)) continue;
        nearest = &spent;
        least_distance = distance;
    }
    const Spent& known = nearest != nullptr ? *nearest : all;
    return known.problems > 0 ? known.ms / known.problems : 0;
}

bool TimeLeft::says_enough() const {
    const auto waiting = kinds_.begin() + static_cast<std::ptrdiff_t>(next_);
    const auto known = std::count_if(waiting, kinds_.end(), [&](const Kind& kind) { return is_known(kind); });
    return 2 * known >= kinds_.end() - waiting;
}

/// What is left of the problem that runs: by its own pace once it has one.
double TimeLeft::current_ms(Milliseconds now) const {
    if (!is_running_) return 0;
    const auto spent = static_cast<double>((now - began_).count());
    const double whole = share_done_ >= smallest_share ? spent / share_done_ : mean_ms(kinds_[next_ - 1]);
    return std::max(0.0, whole - spent);
}

std::optional<TimeLeft::Milliseconds> TimeLeft::left(Milliseconds now) const {
    const bool has_pace = !is_running_ || share_done_ >= smallest_share || !spent_.empty();
    if (!has_pace || !says_enough()) return std::nullopt;
    double ms = current_ms(now);
    for (std::size_t i = next_; i < kinds_.size(); ++i) ms += mean_ms(kinds_[i]);
    return Milliseconds(static_cast<std::int64_t>(ms));
}

}  // namespace hone::tuner
