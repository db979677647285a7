#include "tuner/search/race.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "tuner/search/statistics.h"

namespace hone::tuner {
namespace {

constexpr double no_time = std::numeric_limits<double>::infinity();

/// A finalist held against the fastest, round by round: what slows one round down slows both.
struct Comparison {
    double ratio;  ///< trimmed mean of its time over the fastest's
    Interval interval;
};

/// Both have times.
Comparison compare(const Standing& standing, const Standing& fastest) {
    const std::vector<double> ratios = paired_ratios(standing.us, fastest.us);
    return {.ratio = trimmed_mean(ratios), .interval = trimmed_mean_interval(ratios)};
}

std::optional<std::size_t> first_besides(std::size_t winner, const std::vector<std::size_t>& order) {
    const auto other = std::ranges::find_if(order, [&](std::size_t i) { return i != winner; });
    return other == order.end() ? std::nullopt : std::optional(*other);
}

}  // namespace

double Standing::typical_us() const {
    return us.empty() ? contestant.known_us.value_or(no_time) : trimmed_mean(us);
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
        if (standing.launched && !standing.failed()) best = std::min(best, standing.typical_us());
    }
    return best;
}

std::vector<std::size_t> Race::by_time(std::vector<std::size_t> indices) const {
    std::ranges::stable_sort(indices, {}, [&](std::size_t i) { return standings_[i].typical_us(); });
    return indices;
}

const Standing& Race::enter(Contestant contestant) {
    Standing& standing =
        standings_.emplace_back(Standing{.contestant = std::move(contestant), .verdict = {}, .us = {}});
    const bool is_hopeless = standing.contestant.known_us.value_or(0) > heat_limit() * best_us();
    if (is_hopeless && !standing.contestant.is_default) {
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
        const int replays = replays_are_long() ? rules_.long_screening_replays : rules_.screening_replays;
        take(standing, measurer_.time(standing.contestant.image, replays));
    }
    standing.dropped = standing.failed() || standing.us.empty();
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
        standing.sm_clock_mhz = samples.sm_clock_mhz;
    }
    standing.dropped = standing.failed();
}

/// Of those that ran in the same rounds.
void Race::compare_with_incumbent(const std::vector<std::size_t>& racing) {
    const auto incumbent =
        std::ranges::find_if(racing, [&](std::size_t i) { return standings_[i].contestant.is_incumbent; });
    for (const std::size_t i : racing) {
        Standing& standing = standings_[i];
        const bool is_comparable =
            incumbent != racing.end() && standing.us.size() == standings_[*incumbent].us.size();
        standing.incumbent_ratio = is_comparable ? compare(standing, standings_[*incumbent]).ratio : 0;
    }
}

void Race::drop_slower_than(double factor) {
    const double limit = factor * best_us();
    for (Standing& standing : standings_) {
        const double own_limit =
            standing.contestant.is_incumbent ? std::max(factor, rules_.incumbent_limit) * best_us() : limit;
        if (standing.typical_us() > own_limit) standing.dropped = true;
    }
}

bool Race::replays_are_long() const {
    const double best = best_us();
    return std::isfinite(best) && best * measurer_.calls_per_replay() > rules_.long_replay_us;
}

/// Three replays of a short kernel say less than three of a long one.
double Race::heat_limit() const {
    return best_us() < rules_.short_us ? rules_.short_heat_limit : rules_.heat_limit;
}

/// All at once, round by round: where power limits the clock it falls during a heat, and would fall for those
/// alone who come later.
void Race::heat() {
    drop_slower_than(heat_limit());
    std::vector<std::size_t> racing = by_time(running());
    if (racing.empty()) return;
    for (std::size_t i = rules_.heat_seats; i < racing.size(); ++i) standings_[racing[i]].dropped = true;
    racing.resize(std::min(racing.size(), rules_.heat_seats));
    const int wanted = replays_are_long() ? rules_.long_heat_rounds : rules_.heat_rounds;
    const int rounds = affordable(rules_.heat_us, racing, wanted);
    std::vector<std::vector<double>> screened;
    for (const std::size_t i : racing) {
        observer_.about_to_launch(standings_[i].contestant);
        screened.push_back(std::exchange(standings_[i].us, {}));
        standings_[i].stage = cache::Stage::raced;
    }
    run_rounds(racing, rounds);
    if (observer_.stop()) keep_screening(racing, screened);
    clock_fell_ = has_slowed_down(racing);
    compare_with_incumbent(racing);
    for (const std::size_t i : racing) {
        if (standings_[i].us.empty()) standings_[i].dropped = true;
        observer_.settled(standings_[i], false);
    }
}

/// Where the run ended before the heat had a time of somebody, that of its screening counts.
void Race::keep_screening(const std::vector<std::size_t>& racing,
                          const std::vector<std::vector<double>>& screened) {
    for (std::size_t i = 0; i < racing.size(); ++i) {
        Standing& standing = standings_[racing[i]];
        if (standing.failed() || !standing.us.empty()) continue;
        standing.us = screened[i];
        standing.stage = cache::Stage::screened;
    }
}

/// Whether the last third of these rounds took all of them longer than the first: each round by the median of
/// their times over their own medians, so that one with replays of two levels does not count.
bool Race::has_slowed_down(const std::vector<std::size_t>& racing) const {
    if (best_us() < rules_.least_power_us) return false;
    std::vector<double> pace;
    for (std::size_t round = 0;; ++round) {
        std::vector<double> relative;
        for (const std::size_t i : racing) {
            const std::vector<double>& us = standings_[i].us;
            if (round < us.size()) relative.push_back(us[round] / median(us));
        }
        if (relative.empty()) break;
        pace.push_back(median(relative));
    }
    const std::size_t third = pace.size() / 3;
    const std::span<const double> rounds(pace);
    return third > 0 && median(rounds.last(third)) > (1 + rules_.clock_fall) * median(rounds.first(third));
}

/// How many rounds fit; at least as many as screening has replays.
int Race::affordable(double budget_us, const std::vector<std::size_t>& racing, int wanted) const {
    double round_us = 0;
    for (const std::size_t i : racing) round_us += standings_[i].typical_us();
    const double fitting = budget_us / (round_us * measurer_.calls_per_replay());
    return static_cast<int>(std::clamp<double>(fitting, std::min(wanted, rules_.screening_replays), wanted));
}

/// Adds the times of interleaved rounds.
void Race::run_rounds(const std::vector<std::size_t>& racing, int rounds) {
    std::vector<CandidateImage> images;
    for (const std::size_t i : racing) images.push_back(standings_[i].contestant.image);
    const std::vector<Samples> samples = measurer_.interleave(images, rounds);
    for (std::size_t i = 0; i < racing.size(); ++i) {
        Standing& standing = standings_[racing[i]];
        if (!standing.failed()) take(standing, samples[i]);
    }
}

/// The fastest take the first seats. The others go by rank among those close enough to win: so whoever the
/// choice prefers has a seat in every run, whatever the noise.
std::vector<std::size_t> Race::choose_finalists() const {
    const std::vector<std::size_t> order = by_time(running());
    if (order.empty()) return {};
    const double best_us = standings_[order.front()].typical_us();
    const auto within = [&](double factor) {
        const double limit = factor * best_us;
        return std::ranges::count_if(order,
                                     [&](std::size_t i) { return standings_[i].typical_us() <= limit; });
    };
    const double limit_of_holder = is_anew_ ? rules_.taken_place_limit : rules_.final_limit;
    std::vector<std::size_t> close(order.begin(), order.begin() + within(rules_.final_limit));
    const auto seated = static_cast<std::ptrdiff_t>(std::min(rules_.fastest_seats, close.size()));
    const std::ptrdiff_t level = std::clamp(within(1 + rules_.holding_band), seated, std::ssize(close));
    std::sort(close.begin() + seated, close.begin() + level,
              [&](std::size_t a, std::size_t b) { return rank(a) < rank(b); });
    close.resize(std::min(close.size(), rules_.finalists));
    if (const std::optional<std::size_t> keeps = holder(order);
        keeps && std::ranges::find(close, *keeps) == close.end() &&
        (is_challenge_ || standings_[*keeps].typical_us() <= limit_of_holder * best_us)) {
        close.push_back(*keeps);
    }
    return close;
}

/// Who keeps its place among these unless it is beaten clearly: the incumbent, else the default.
std::optional<std::size_t> Race::holder(const std::vector<std::size_t>& racing) const {
    const std::vector<std::size_t> order = by_rank(racing);
    if (order.empty()) return std::nullopt;
    const Contestant& first = standings_[order.front()].contestant;
    return first.is_incumbent || first.is_default ? std::optional(order.front()) : std::nullopt;
}

/// The incumbent, then the default, then in the order of entry: what was known before the run stands in front
/// there, and measured times play no part.
std::pair<int, std::size_t> Race::rank(std::size_t i) const {
    const Contestant& contestant = standings_[i].contestant;
    return {contestant.is_incumbent ? 0 : contestant.is_default ? 1 : 2, i};
}

std::vector<std::size_t> Race::by_rank(std::vector<std::size_t> indices) const {
    std::ranges::sort(indices, {}, [&](std::size_t i) { return rank(i); });
    return indices;
}

/// The rounds of the heat count: everyone here ran in all of them.
void Race::run_final(const std::vector<std::size_t>& finalists) {
    for (const std::size_t i : finalists) {
        observer_.about_to_launch(standings_[i].contestant);
        standings_[i].stage = cache::Stage::final_round;
    }
    const int rounds = finalists.empty() ? 0 : affordable(rules_.final_us, finalists, rules_.final_rounds);
    for (int round = 0; round < rounds; round += rules_.rounds_at_once) {
        const bool has_times = round > 0 || !(is_challenge_ || is_anew_);
        if (has_times && !undecided(finalists)) break;
        run_rounds(finalists, std::min(rounds - round, rules_.rounds_at_once));
    }
    compare_with_incumbent(finalists);
}

/// Another batch of rounds helps while the interval of someone who might win reaches over the edge of its
/// band: of those by rank up to the first that surely holds. And where the fastest takes one of several
/// times: ten rounds may all show the same one.
bool Race::undecided(const std::vector<std::size_t>& finalists) const {
    const std::vector<std::size_t> alive = with_times(finalists);
    if (alive.size() < 2) return false;
    const Standing& fastest = standings_[by_time(alive).front()];
    const cache::Timing spread = summarize(fastest.us);
    if (spread.p90_us > rules_.level_spread * spread.p10_us) return true;
    for (const std::size_t i : by_rank(alive)) {
        const Interval interval = compare(standings_[i], fastest).interval;
        const double edge = 1 + band_of(standings_[i]);
        if (interval.low <= edge && interval.high >= edge) return true;
        if (holds(standings_[i], fastest)) return false;
    }
    return false;
}

std::vector<std::size_t> Race::with_times(const std::vector<std::size_t>& finalists) const {
    std::vector<std::size_t> alive;
    for (const std::size_t i : finalists) {
        if (!standings_[i].failed() && !standings_[i].us.empty()) alive.push_back(i);
    }
    return alive;
}

/// Not beaten by more than the band, or not surely beaten at all: rounds of a kernel that takes one of
/// several times are never sure, so that this excuses no more than a little. Where the clock fell during the
/// heat, who is ahead only while power limits it, or only while it does not, is behind in the fastest tenth
/// or in the median. Elsewhere fastest tenths say nothing: a kernel whose replays have two levels is as fast
/// as the best in its fastest tenth, and slower on the mean.
bool Race::holds(const Standing& standing, const Standing& fastest) const {
    const Comparison comparison = compare(standing, fastest);
    const bool is_level_at_best =
        clock_fell_ && summarize(standing.us).p10_us <= summarize(fastest.us).p10_us;
    const bool is_doubtful = comparison.interval.low <= 1 && comparison.ratio <= rules_.doubt_limit;
    return comparison.ratio <= 1 + band_of(standing) || is_doubtful || is_level_at_best;
}

double Race::band_of(const Standing& standing) const {
    return is_challenge_ && standing.contestant.is_incumbent ? rules_.challenge_band : rules_.holding_band;
}

/// The first by rank that holds against the fastest, which does itself.
Decision Race::decide(const std::vector<std::size_t>& finalists) const {
    std::vector<std::size_t> alive = with_times(finalists);
    if (alive.empty()) return {};
    const Standing& fastest = standings_[by_time(alive).front()];
    std::ranges::stable_sort(alive, {}, [&](std::size_t i) { return compare(standings_[i], fastest).ratio; });

    const std::vector<std::size_t> ranked = by_rank(alive);
    Decision decision;
    decision.complete = true;
    decision.winner =
        *std::ranges::find_if(ranked, [&](std::size_t i) { return holds(standings_[i], fastest); });
    decision.runner_up = first_besides(*decision.winner, alive);
    return decision;
}

/// From the heat alone, when there was no time for a final.
Decision Race::decide_early() const {
    const std::vector<std::size_t> order = by_time(running());
    if (order.empty()) return {};
    const std::optional<std::size_t> keeps = holder(order);
    const bool stays = keeps && standings_[*keeps].typical_us() <= (1 + band_of(standings_[*keeps])) *
                                                                       standings_[order.front()].typical_us();
    const std::size_t winner = stays ? *keeps : order.front();
    return {.winner = winner, .runner_up = first_besides(winner, order)};
}

Decision Race::finish(const std::function<bool()>& begin_anew) {
    if (!observer_.stop()) heat();
    is_anew_ = begin_anew && !observer_.stop() && loses_place(decide(choose_finalists()));
    const std::vector<std::size_t> finalists = choose_finalists();
    const bool early = observer_.stop() || (is_anew_ && !begin_anew());
    if (!early) run_final(finalists);
    const Decision decision = early ? decide_early() : decide(finalists);
    tell(decision, early ? std::vector<std::size_t>{} : finalists);
    return decision;
}

bool Race::keeps_place(const Decision& decision) const {
    return !decision.winner || standings_[*decision.winner].contestant.is_incumbent;
}

/// Whoever is ahead may owe it to where buffers lay, and so may an incumbent that is behind.
bool Race::loses_place(const Decision& decision) const {
    const bool has_incumbent = std::ranges::any_of(standings_, [](const Standing& standing) {
        return standing.contestant.is_incumbent && standing.launched && !standing.failed();
    });
    return has_incumbent && !keeps_place(decision);
}

void Race::tell(const Decision& decision, const std::vector<std::size_t>& finalists) {
    for (std::size_t i = 0; i < standings_.size(); ++i) {
        const bool won = decision.winner == i;
        const bool raced = std::ranges::find(finalists, i) != finalists.end();
        if (won || raced) observer_.settled(standings_[i], won);
    }
}

std::optional<Decision> Race::challenge(const std::function<bool()>& begin_anew) {
    if (observer_.stop()) return std::nullopt;
    is_challenge_ = true;
    heat();
    if (observer_.stop() || keeps_place(decide_early())) return std::nullopt;
    const std::vector<std::size_t> finalists = choose_finalists();
    if (!begin_anew()) return std::nullopt;
    for (const std::size_t i : finalists) standings_[i].us.clear();
    run_final(finalists);
    const Decision decision = decide(finalists);
    const bool stays = keeps_place(decision);
    tell(stays ? Decision{} : decision, finalists);
    return stays ? std::nullopt : std::optional(decision);
}

}  // namespace hone::tuner
