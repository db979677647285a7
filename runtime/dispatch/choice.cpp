#include "runtime/dispatch/choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <compare>
#include <set>
#include <tuple>

#include "kernel_templates/catalog.h"
#include "kernel_templates/kin.h"

namespace hone::runtime {
namespace {

/// Two doublings: beyond that a winner says little about a bucket that lies outside everything measured.
constexpr double reach_log2 = 2.0;

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

void add_record(const Problem& problem, const cache::LoadedWinner& winner, Knowledge& knowledge) {
    const std::optional<Candidate> candidate = parse_candidate(*problem.family, winner.trial.candidate);
    const std::optional<Problem> won = parse_problem(
        *problem.family, winner.trial.key.static_fields + ' ' + winner.trial.key.dynamic_fields);
    std::string reason = won ? reason_against(winner, candidate) : "this build does not take such a problem";
    if (reason.empty()) {
        knowledge.winners.push_back({.problem = *won,
                                     .candidate = *candidate,
                                     .trust = public_trust(winner.trust),
                                     .of_kin = {},
                                     .record = &winner});
    } else {
        knowledge.passed_over.push_back(fmt::format("{}: {}", describe(winner), reason));
    }
}

/// "bf16"; empty: the family's tensors have no type of their own.
std::string_view dtype_of(const Problem& problem) {
    const int index = field_index(*problem.family, "dtype");
    if (index < 0) return {};
    const auto dtype = static_cast<std::size_t>(index);
    return problem.family->fields[dtype].choices[static_cast<std::size_t>(problem[dtype])];
}

/// The fields of `kin` that differ, with their values; of another family, its name and another type.
std::string difference(const Problem& problem, const Problem& kin) {
    std::vector<std::string> words;
    if (problem.family != kin.family) {
        words.emplace_back(kin.family->name);
        if (dtype_of(problem) != dtype_of(kin)) words.push_back(fmt::format("dtype={}", dtype_of(kin)));
        return fmt::format("{}", fmt::join(words, " "));
    }
    for (std::size_t i = 0; i < problem.family->fields.size(); ++i) {
        const Field& field = problem.family->fields[i];
        if (is_static(field) && problem[i] != kin[i])
            words.push_back(fmt::format("{}={}", field.name, value_text(field, kin[i])));
    }
    return fmt::format("{}", fmt::join(words, " "));
}

/// The same problem in the other type of 16 bits: a kernel moves as many bytes there, with as many
/// instructions, so the winners are the same but for noise. nullopt: it is in another type.
std::optional<Problem> in_other_half(const Problem& problem) {
    const std::string_view word = dtype_of(problem);
    if (word != "bf16" && word != "fp16") return std::nullopt;
    const auto dtype = static_cast<std::size_t>(field_index(*problem.family, "dtype"));
    const std::span<const std::string_view> choices = problem.family->fields[dtype].choices;
    const auto other = std::ranges::find(choices, word == "bf16" ? "fp16" : "bf16");
    if (other == choices.end()) return std::nullopt;
    return with(problem, dtype, other - choices.begin());
}

/// A winner of `won`, which is the line's last problem or the same in the other half, as it serves the line's
/// first; nothing where that one's family has no such variant.
std::optional<KnownWinner> as_ours(std::span<const Problem> line, const Problem& won, KnownWinner winner) {
    const std::optional<Candidate> candidate = from_kin(line, winner.candidate);
    if (!candidate) return std::nullopt;
    const Problem& problem = line.front();
    winner.candidate = *candidate;
    winner.of_kin = difference(problem, won);
    winner.degree = static_cast<int>(line.size()) - 1;
    winner.other_half = won != line.back();
    winner.problem = with(problem, sizes_of(winner.problem));
    return winner;
}

double doublings_between(std::int64_t a, std::int64_t b) {
    return std::abs(std::log2(static_cast<double>(a)) - std::log2(static_cast<double>(b)));
}

/// By the dynamic fields, then by the free ones.
std::strong_ordering by_sizes(const Problem& a, const Problem& b) {
    for (const FieldIndices& fields : {dynamic_fields(*a.family), run_time_fields(*a.family)}) {
        for (const std::uint8_t field : fields) {
            if (a[field] != b[field]) return a[field] <=> b[field];
        }
    }
    return std::strong_ordering::equal;
}

/// Nearest first; of two equally near that of the problem's own type, then the larger, whose grid fills the
/// device like this one's; then a fixed order.
bool nearer(const KnownWinner& a, const KnownWinner& b, const Problem& problem) {
    const double distance_a = log2_distance(a.problem, problem);
    const double distance_b = log2_distance(b.problem, problem);
    if (distance_a != distance_b) return distance_a < distance_b;
    if (a.other_half != b.other_half) return b.other_half;
    if (const auto order = by_sizes(a.problem, b.problem); order != 0) return order > 0;
    return to_string(a.candidate) < to_string(b.candidate);
}

/// Whether the problem's value of a field lies within reach of the winner's, or between those of two.
bool within_reach(const KnownWinner& winner, std::span<const KnownWinner* const> usable,
                  const Problem& problem, std::size_t field) {
    if (doublings_between(winner.problem[field], problem[field]) <= reach_log2) return true;
    const auto any = [&](auto holds) { return std::ranges::any_of(usable, holds); };
    return any([&](const KnownWinner* one) { return one->problem[field] < problem[field]; }) &&
           any([&](const KnownWinner* one) { return one->problem[field] > problem[field]; });
}

/// The nearest of `usable`, if the problem lies within its reach.
const KnownWinner* nearest(std::span<const KnownWinner* const> usable, const Problem& problem) {
    const KnownWinner* best = nullptr;
    for (const KnownWinner* winner : usable) {
        if (best == nullptr || nearer(*winner, *best, problem)) best = winner;
    }
    if (best == nullptr) return nullptr;
    const FieldIndices fields = dynamic_fields(*problem.family);
    const bool reached = std::ranges::all_of(
        fields, [&](std::uint8_t field) { return within_reach(*best, usable, problem, field); });
    return reached ? best : nullptr;
}

/// Of the problem's own winners, or of those of its kin of this degree.
const KnownWinner* nearest_allowed(const Problem& problem, std::span<const KnownWinner> winners,
                                   const DeviceTraits& traits, bool foreign, int degree) {
    std::vector<const KnownWinner*> usable;
    for (const KnownWinner& winner : winners) {
        if ((winner.trust == Trust::foreign) != foreign || winner.degree != degree) continue;
        if (allowed(problem, winner.candidate, traits)) usable.push_back(&winner);
    }
    return nearest(usable, problem);
}

Choice take(const KnownWinner& winner, Origin origin) {
    std::string measured_at = dynamic_text(winner.problem);
    if (!winner.of_kin.empty()) measured_at += ' ' + winner.of_kin;
    return {winner.candidate, origin, winner.trust, std::move(measured_at), winner.record};
}

}  // namespace

double log2_distance(const Problem& a, const Problem& b) {
    double sum = 0;
    for (const std::uint8_t field : dynamic_fields(*a.family)) sum += doublings_between(a[field], b[field]);
    return sum;
}

WinnerTable::WinnerTable(WinnersOf winners_of) : winners_of_(std::move(winners_of)) {}

WinnerTable::WinnerTable(cache::Winners winners)
    : winners_of_([winners = std::move(winners)](std::string_view family, std::string_view static_fields) {
          return winners.of(family, static_fields);
      }) {}

Knowledge WinnerTable::find(const Problem& problem) const {
    Knowledge knowledge = find_own(problem);
    const std::vector<Problem> line = with_kin(problem);
    for (std::size_t steps = 0; steps < line.size(); ++steps) {
        for (const std::optional<Problem>& won : {std::optional(line[steps]), in_other_half(line[steps])}) {
            if (!won || *won == problem) continue;
            if (const std::string& trouble = stored(*won).trouble; !trouble.empty())
                knowledge.passed_over.push_back(trouble);
            for (KnownWinner& winner : find_own(*won).winners) {
                if (std::optional<KnownWinner> ours =
                        as_ours(std::span(line).first(steps + 1), *won, std::move(winner)))
                    knowledge.winners.push_back(*std::move(ours));
            }
        }
    }
    return knowledge;
}

Knowledge WinnerTable::find_own(const Problem& problem) const {
    const cache::StaticWinners& found = stored(problem);
    Knowledge knowledge;
    if (!found.trouble.empty()) knowledge.passed_over.push_back(found.trouble);
    for (const cache::LoadedWinner& winner : found.winners) add_record(problem, winner, knowledge);
    std::ranges::stable_sort(knowledge.winners, [](const KnownWinner& a, const KnownWinner& b) {
        return by_sizes(a.problem, b.problem) < 0;
    });
    return knowledge;
}

const cache::StaticWinners& WinnerTable::stored(const Problem& problem) const {
    const std::pair key(std::string(problem.family->name), static_text(problem));
    const std::lock_guard lock(mutex_);
    const auto known = stored_.find(key);
    if (known != stored_.end()) return known->second;
    return stored_.emplace(key, winners_of_(key.first, key.second)).first->second;
}

std::optional<Choice> choose(const Problem& problem, std::span<const KnownWinner> winners,
                             const DeviceTraits& traits) {
    int most = 0;
    for (const KnownWinner& winner : winners) most = std::max(most, winner.degree);
    for (const bool foreign : {false, true}) {
        for (int degree = 0; degree <= most; ++degree) {
            const KnownWinner* winner = nearest_allowed(problem, winners, traits, foreign, degree);
            if (winner == nullptr) continue;
            const bool exact = winner->of_kin.empty() && log2_distance(winner->problem, problem) == 0;
            return take(*winner, foreign ? Origin::foreign : exact ? Origin::exact : Origin::neighbour);
        }
    }
    return choose_fallback(problem, traits);
}

std::vector<std::int64_t> measured_between(const Problem& problem, const Knowledge& knowledge,
                                           const DeviceTraits& traits) {
    const int finer = finer_field(*problem.family);
    if (finer < 0) return {};
    const auto field = static_cast<std::size_t>(finer);
    std::set<std::int64_t> sizes;
    for (const KnownWinner& winner : knowledge.winners) {
        const std::int64_t size = winner.problem[field];
        if (winner.trust == Trust::foreign || !is_finer_edge(size) || sizes.contains(size)) continue;
        const auto choice = choose(with(problem, field, size), knowledge.winners, traits);
        // Of kin behind a nearer neighbour it is not taken: its bucket would bring nothing.
        if (choice && choice->record == winner.record) sizes.insert(size);
    }
    return {sizes.begin(), sizes.end()};
}

std::optional<Choice> choose_fallback(const Problem& problem, const DeviceTraits& traits) {
    const std::optional<Candidate> candidate = fallback(problem, traits);
    if (!candidate) return std::nullopt;
    return Choice{.candidate = *candidate};
}

std::string tune_command(const Problem& problem, std::span<const std::int64_t> values) {
    if (values.empty()) return {};
    std::string fields = static_text(problem);
    const FieldIndices dynamic = dynamic_fields(*problem.family);
    for (std::size_t i = 0; i + 1 < dynamic.count; ++i)
        fields += fmt::format(" {}={}", problem.family->fields[dynamic[i]].name, problem[dynamic[i]]);
    return fmt::format("hone tune --op {} --fields \"{}\" --tokens {}", problem.family->name, fields,
                       fmt::join(values, ","));
}

}  // namespace hone::runtime
