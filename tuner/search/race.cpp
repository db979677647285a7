#include "tuner/search/race.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "tuner/search/statistics.h"

namespace hone::tuner {
namespace {

constexpr double no_time = std::numeric_limits<double>::infinity();

/// A finalist held against the fastest, round by round: what slows one round down slows both.
struct Comparison {
    double ratio;  ///< median of its time over the fastest's
    Interval interval;
};

/// Both have times.
Comparison compare(const Standing& standing, const Standing& fastest) {
    const std::vector<double> ratios = paired_ratios(standing.us, fastest.us);
    return {.ratio = median(ratios), .interval = median_interval(ratios)};
}

double band(const Comparison& comparison, const RaceRules& rules) {
    return 1 + std::max(rules.tie_band, comparison.interval.half_width());
}

/// The first index after which the ratios, ascending, jump by more than the smallest gap and than both their
/// confidence intervals allow: everyone before it is one group. The widest such gap counts.
std::size_t group_end(const std::vector<Comparison>& ties, const RaceRules& rules) {
    std::size_t end = ties.size();
    double widest = rules.smallest_gap;
    for (std::size_t i = 1; i < ties.size(); ++i) {
        const double gap = ties[i].ratio - ties[i - 1].ratio;
        const double noise = ties[i].interval.half_width() + ties[i - 1].interval.half_width();
        if (gap <= widest || gap <= noise) continue;
        widest = gap;
        end = i;
    }
    return end;
}

std::optional<std::size_t> first_besides(std::size_t winner, const std::vector<std::size_t>& order) {
    const auto other = std::ranges::find_if(order, [&](std::size_t i) { return i != winner; });
    return other == order.end() ? std::nullopt : std::optional(*other);
}

}  // namespace

double Standing::median_us() const { return us.empty() ? contestant.known_us.value_or(no_time) : median(us); }

bool comes_first(const Contestant& a, const Contestant& b) {
    const auto key = [](const Contestant& contestant) {
        return std::tuple(contestant.resources.registers, contestant.resources.shared_bytes,
                          to_string(contestant.image.candidate));
    };
    return key(a) < key(b);
}

Race::Race(Measurer& measurer, RaceObserver& observer, RaceRules rules)
    : measurer_(measurer), observer_(observer), rules_(rules) {}

std::vector<std::size_t> Race::running() const {
    std::vector<std::size_t> indices;
    for (std::size_t i = 0; i < standings_.size(); ++i) {
        if (!standings_[i].dropped) indices.push_back(i);
    }
    return indices;
}

double Race::best_us() const {
    double best = no_time;
    for (const Standing& standing : standings_) {
        if (standing.launched && !standing.failed()) best = std::min(best, standing.median_us());
    }
    return best;
}

std::vector<std::size_t> Race::by_time(std::vector<std::size_t> indices) const {
    std::ranges::stable_sort(indices, {}, [&](std::size_t i) { return standings_[i].median_us(); });
    return indices;
}

const Standing& Race::enter(Contestant contestant) {
    Standing& standing =
        standings_.emplace_back(Standing{.contestant = std::move(contestant), .verdict = {}, .us = {}});
    const bool hopeless = standing.contestant.known_us.value_or(0) > rules_.heat_limit * best_us();
    if (hopeless && !standing.contestant.is_default) {
        standing.dropped = true;
    } else {
        screen(standing);
    }
    return standing;
}

void Race::screen(Standing& standing) {
    observer_.about_to_launch(standing.contestant);
    standing.launched = true;
    standing.verdict = measurer_.verify(standing.contestant.image);
    if (!standing.failed()) {
        take(standing, measurer_.time(standing.contestant.image, rules_.screening_replays));
    }
    standing.dropped =
        standing.failed() || standing.us.empty() ||
        (standing.median_us() > rules_.screening_limit * best_us() && !standing.contestant.is_default);
    observer_.settled(standing, false);
}

/// Adds what was measured. No kernel takes no time: then a clock stands still, or a recording has zeros.
void Race::take(Standing& standing, const Samples& samples) {
    standing.verdict = samples.verdict;
    const auto faulty =
        std::ranges::find_if(samples.us, [](double us) { return !(us > 0 && std::isfinite(us)); });
    if (faulty != samples.us.end() && !standing.failed()) {
        standing.verdict.status = cache::TrialStatus::launch_failed;
        standing.verdict.detail = fmt::format(
            "measured {} us a call; allowed are numbers above 0: a clock or a recording is faulty", *faulty);
    } else {
        standing.us.insert(standing.us.end(), samples.us.begin(), samples.us.end());
    }
    standing.dropped = standing.failed();
}

void Race::drop_slower_than(double factor) {
    const double limit = factor * best_us();
    for (Standing& standing : standings_) {
        if (standing.median_us() > limit && !standing.contestant.is_default) standing.dropped = true;
    }
}

void Race::heat() {
    drop_slower_than(rules_.screening_limit);
    for (const std::size_t i : by_time(running())) {
        Standing& standing = standings_[i];
        if (observer_.stop()) return;
        observer_.about_to_launch(standing.contestant);
        const int replays = affordable(rules_.heat_us, standing.median_us(), rules_.heat_replays);
        standing.stage = cache::Stage::raced;
        take(standing, measurer_.time(standing.contestant.image, replays));
        observer_.settled(standing, false);
    }
    drop_slower_than(rules_.heat_limit);
}

/// The cost is above 0, as is every time that take() lets in.
int Race::affordable(double budget_us, double cost_us, int wanted) const {
    const double fitting = budget_us / (cost_us * measurer_.calls_per_replay());
    return static_cast<int>(std::clamp<double>(fitting, std::min(wanted, rules_.screening_replays), wanted));
}

/// The fastest take the first seats. The others go by the fixed order among those close enough to tie: so the
/// candidate that the tie rule prefers has a seat in every run, whatever the noise.
std::vector<std::size_t> Race::choose_finalists() const {
    const std::vector<std::size_t> order = by_time(running());
    const auto within = [&](double factor) {
        const double limit = factor * best_us();
        return std::ranges::count_if(order,
                                     [&](std::size_t i) { return standings_[i].median_us() <= limit; });
    };
    std::vector<std::size_t> close(order.begin(), order.begin() + within(rules_.final_limit));
    const auto seated = static_cast<std::ptrdiff_t>(std::min(rules_.fastest_seats, close.size()));
    const std::ptrdiff_t tied = std::clamp(within(1 + rules_.tie_band), seated, std::ssize(close));
    std::stable_sort(close.begin() + seated, close.begin() + tied, [&](std::size_t a, std::size_t b) {
        return comes_first(standings_[a].contestant, standings_[b].contestant);
    });
    close.resize(std::min(close.size(), rules_.finalists));
    for (const std::size_t i : order) {
        if (standings_[i].contestant.is_default && std::ranges::find(close, i) == close.end())
            close.push_back(i);
    }
    return close;
}

void Race::run_final(const std::vector<std::size_t>& finalists) {
    if (finalists.empty()) return;
    std::vector<CandidateImage> images;
    double round_us = 0;
    for (const std::size_t i : finalists) {
        observer_.about_to_launch(standings_[i].contestant);
        round_us += standings_[i].median_us();
        standings_[i].us.clear();
        standings_[i].stage = cache::Stage::final_round;
        images.push_back(standings_[i].contestant.image);
    }
    const int rounds = affordable(rules_.final_us, round_us, rules_.max_rounds);
    for (int round = 0; round < rounds && undecided(finalists); round += rules_.rounds_at_once) {
        const std::vector<Samples> samples =
            measurer_.interleave(images, std::min(rounds - round, rules_.rounds_at_once));
        for (std::size_t i = 0; i < finalists.size(); ++i) {
            Standing& standing = standings_[finalists[i]];
            if (standing.failed()) continue;
            take(standing, samples[i]);
        }
    }
}

/// Another batch of rounds helps while someone's interval still reaches over the edge of the tie band.
bool Race::undecided(const std::vector<std::size_t>& finalists) const {
    std::vector<std::size_t> alive;
    for (const std::size_t i : finalists) {
        if (standings_[i].us.empty() && !standings_[i].failed()) return true;
        if (!standings_[i].failed()) alive.push_back(i);
    }
    if (alive.size() < 2) return false;
    const Standing& fastest = standings_[by_time(alive).front()];
    const double edge = 1 + rules_.tie_band;
    return std::ranges::any_of(alive, [&](std::size_t i) {
        const Interval interval = compare(standings_[i], fastest).interval;
        return interval.low <= edge && interval.high >= edge;
    });
}

Decision Race::decide(const std::vector<std::size_t>& finalists) const {
    std::vector<std::size_t> alive;
    for (const std::size_t i : finalists) {
        if (!standings_[i].failed() && !standings_[i].us.empty()) alive.push_back(i);
    }
    if (alive.empty()) return {};
    const std::size_t fastest = by_time(alive).front();
    const auto against_fastest = [&](std::size_t i) { return compare(standings_[i], standings_[fastest]); };
    std::ranges::stable_sort(alive, {}, [&](std::size_t i) { return against_fastest(i).ratio; });

    Decision decision;
    decision.complete = true;
    std::vector<std::size_t> tied;
    std::vector<Comparison> ties;
    for (const std::size_t i : alive) {
        const Comparison comparison = against_fastest(i);
        if (comparison.ratio > band(comparison, rules_)) continue;
        if (standings_[i].contestant.is_default) decision.winner = i;  // nobody is clearly better
        tied.push_back(i);
        ties.push_back(comparison);
    }
    tied.resize(group_end(ties, rules_));
    if (!decision.winner) {
        decision.winner = *std::ranges::min_element(tied, [&](std::size_t a, std::size_t b) {
            return comes_first(standings_[a].contestant, standings_[b].contestant);
        });
    }
    decision.runner_up = first_besides(*decision.winner, alive);
    return decision;
}

/// From medians alone, when there was no time for a final.
Decision Race::decide_early() const {
    const std::vector<std::size_t> order = by_time(running());
    if (order.empty()) return {};
    const double limit = (1 + rules_.tie_band) * standings_[order.front()].median_us();
    const auto preferred = std::ranges::find_if(order, [&](std::size_t i) {
        return standings_[i].contestant.is_default && standings_[i].median_us() <= limit;
    });
    const std::size_t winner = preferred == order.end() ? order.front() : *preferred;
    return {.winner = winner, .runner_up = first_besides(winner, order)};
}

Decision Race::finish() {
    if (!observer_.stop()) heat();
    const bool early = observer_.stop();
    const std::vector<std::size_t> finalists = choose_finalists();
    if (!early) run_final(finalists);
    const Decision decision = early ? decide_early() : decide(finalists);
    for (std::size_t i = 0; i < standings_.size(); ++i) {
        const bool won = decision.winner == i;
        const bool raced = !early && std::ranges::find(finalists, i) != finalists.end();
        if (won || raced) observer_.settled(standings_[i], won);
    }
    return decision;
}

}  // namespace hone::tuner
