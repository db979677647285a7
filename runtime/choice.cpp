#include "runtime/choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "kernel_templates/catalog.h"

namespace hone::runtime {
namespace {

/// Two doublings: beyond that a winner says little about a bucket that lies outside everything measured.
constexpr double reach_log2 = 2.0;

auto static_key(const cache::LoadedWinner& winner) {
    return std::tie(winner.trial.key.family, winner.trial.key.static_fields);
}

Trust public_trust(cache::Trust trust) {
    switch (trust) {
        case cache::Trust::exact: return Trust::exact;
        case cache::Trust::compatible: return Trust::compatible;
        case cache::Trust::foreign: return Trust::foreign;
        case cache::Trust::stale:
        case cache::Trust::unusable: break;
    }
    return Trust::none;
}

std::string describe(const cache::LoadedWinner& winner) {
    return fmt::format("{} at {} ({} layer)", winner.trial.candidate, winner.trial.key.dynamic_fields,
                       winner.layer);
}

/// Why a record is not dispatched whatever the bucket; empty when it may be.
std::string reason_against(const cache::LoadedWinner& winner, const std::optional<Candidate>& candidate) {
    const cache::Trial& trial = winner.trial;
    if (trial.status != cache::TrialStatus::ok)
        return fmt::format("its status is {}", cache::name(trial.status));
    if (trial.provenance == cache::Provenance::predicted) return "it was predicted, never run on a GPU";
    if (!candidate) return "this build has no such candidate";
    if (winner.trust == cache::Trust::stale || trial.template_hash != template_hash(*candidate->variant)) {
        return "its kernel has changed since (stale)";
    }
    if (public_trust(winner.trust) == Trust::none) return "it was measured on another compute capability";
    return {};
}

std::optional<std::int64_t> dynamic_value(const Problem& problem, const cache::Trial& trial) {
    const int field = dynamic_field(*problem.family);
    const auto parsed =
        parse_problem(*problem.family, trial.key.static_fields + ' ' + trial.key.dynamic_fields);
    if (!parsed || field < 0) return std::nullopt;
    return (*parsed)[static_cast<std::size_t>(field)];
}

void add_record(const Problem& problem, const cache::LoadedWinner& winner, Knowledge& knowledge) {
    const std::optional<Candidate> candidate = parse_candidate(*problem.family, winner.trial.candidate);
    const std::optional<std::int64_t> value = dynamic_value(problem, winner.trial);
    std::string reason =
        value ? reason_against(winner, candidate) : "this build does not take such a problem";
    if (reason.empty()) {
        knowledge.winners.push_back({*value, *candidate, public_trust(winner.trust), &winner});
    } else {
        knowledge.passed_over.push_back(fmt::format("{}: {}", describe(winner), reason));
    }
}

double log2_distance(std::int64_t a, std::int64_t b) {
    return std::abs(std::log2(static_cast<double>(a)) - std::log2(static_cast<double>(b)));
}

/// Nearest first; of two equally near the larger, whose grid fills the device like this one's; then a fixed
/// order.
bool nearer(const KnownWinner& a, const KnownWinner& b, std::int64_t value) {
    const double distance_a = log2_distance(a.value, value);
    const double distance_b = log2_distance(b.value, value);
    if (distance_a != distance_b) return distance_a < distance_b;
    if (a.value != b.value) return a.value > b.value;
    return to_string(a.candidate) < to_string(b.candidate);
}

/// The nearest of `usable`, if `value` lies within reach of it or between two of them.
const KnownWinner* nearest(std::span<const KnownWinner* const> usable, std::int64_t value) {
    const KnownWinner* best = nullptr;
    bool below = false;
    bool above = false;
    for (const KnownWinner* winner : usable) {
        below = below || winner->value < value;
        above = above || winner->value > value;
        if (best == nullptr || nearer(*winner, *best, value)) best = winner;
    }
    if (best == nullptr) return nullptr;
    const bool between = below && above;
    return between || log2_distance(best->value, value) <= reach_log2 ? best : nullptr;
}

const KnownWinner* nearest_allowed(const Problem& problem, std::span<const KnownWinner> winners,
                                   const DeviceTraits& traits, bool foreign) {
    std::vector<const KnownWinner*> usable;
    for (const KnownWinner& winner : winners) {
        if ((winner.trust == Trust::foreign) != foreign) continue;
        if (allowed(problem, winner.candidate, traits)) usable.push_back(&winner);
    }
    return nearest(usable, problem[static_cast<std::size_t>(dynamic_field(*problem.family))]);
}

Choice take(const KnownWinner& winner, Origin origin) {
    return {winner.candidate, origin, winner.trust, winner.value, winner.record};
}

}  // namespace

WinnerTable::WinnerTable(std::vector<cache::LoadedWinner> winners) : winners_(std::move(winners)) {
    std::ranges::stable_sort(winners_, {}, static_key);
}

Knowledge WinnerTable::find(const Problem& problem) const {
    const std::string family(problem.family->name);
    const std::string fields = static_text(problem);
    Knowledge knowledge;
    for (const auto& winner : std::ranges::equal_range(winners_, std::tie(family, fields), {}, static_key)) {
        add_record(problem, winner, knowledge);
    }
    std::ranges::stable_sort(knowledge.winners, {}, &KnownWinner::value);
    return knowledge;
}

std::optional<Choice> choose(const Problem& problem, std::span<const KnownWinner> winners,
                             const DeviceTraits& traits) {
    const std::int64_t value = problem[static_cast<std::size_t>(dynamic_field(*problem.family))];
    if (const KnownWinner* winner = nearest_allowed(problem, winners, traits, false)) {
        return take(*winner, winner->value == value ? Origin::exact : Origin::neighbour);
    }
    if (const KnownWinner* winner = nearest_allowed(problem, winners, traits, true))
        return take(*winner, Origin::foreign);
    return choose_fallback(problem, traits);
}

std::optional<Choice> choose_fallback(const Problem& problem, const DeviceTraits& traits) {
    const std::optional<Candidate> candidate = fallback(problem, traits);
    if (!candidate) return std::nullopt;
    return Choice{.candidate = *candidate};
}

std::string tune_command(const Problem& problem, std::span<const std::int64_t> values) {
    if (values.empty()) return {};
    return fmt::format("hone tune --op {} --fields \"{}\" --tokens {}", problem.family->name,
                       static_text(problem), fmt::join(values, ","));
}

}  // namespace hone::runtime
