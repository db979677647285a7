#include "cli/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "runtime/system/short_text.h"
#include "tuner/report/report_text.h"

namespace hone::cli {
namespace {

using tuner::Align;

enum class Verdict : std::uint8_t { same, tied, different };
constexpr std::array<std::string_view, 3> verdict_names{"same", "tied", "different"};

std::string_view name(Verdict verdict) { return verdict_names[static_cast<std::size_t>(verdict)]; }

/// One problem on one kind of GPU that both sides have a winner of.
struct Pair {
    const StoredRace* here = nullptr;
    const StoredRace* there = nullptr;
    Verdict verdict = Verdict::different;
};

struct Comparison {
    std::vector<Pair> pairs;  ///< by problem
    std::size_t here_alone = 0;
    std::size_t there_alone = 0;

    [[nodiscard]] std::ptrdiff_t count(Verdict verdict) const {
        return std::ranges::count(pairs, verdict, &Pair::verdict);
    }
};

bool ties_with(const StoredRace& race, const std::string& candidate) {
    return std::ranges::find(race.ties.others, candidate, &cache::Trial::candidate) != race.ties.others.end();
}

/// A tie where either race could as well have ended with the other's winner.
Verdict verdict_of(const StoredRace& here, const StoredRace& there) {
    const std::string& ours = here.winner.trial.candidate;
    const std::string& theirs = there.winner.trial.candidate;
    if (ours == theirs) return Verdict::same;
    return ties_with(here, theirs) || ties_with(there, ours) ? Verdict::tied : Verdict::different;
}

using ByKey = std::map<cache::TuningKey, const StoredRace*>;

/// Where several layers have a problem, the first one counts.
ByKey by_key(const std::vector<StoredRace>& races) {
    ByKey map;
    for (const StoredRace& race : races) map.emplace(race.winner.trial.key, &race);
    return map;
}

Comparison compare(const std::vector<StoredRace>& here, const std::vector<StoredRace>& there) {
    const ByKey ours = by_key(here);
    const ByKey theirs = by_key(there);
    Comparison comparison;
    for (const auto& [key, race] : ours) {
        const auto other = theirs.find(key);
        if (other == theirs.end()) continue;
        comparison.pairs.push_back({race, other->second, verdict_of(*race, *other->second)});
    }
    comparison.here_alone = ours.size() - comparison.pairs.size();
    comparison.there_alone = theirs.size() - comparison.pairs.size();
    return comparison;
}

std::string problem_text(const cache::TuningKey& key) {
    return fmt::format("{} {} {}", key.family, key.static_fields, key.dynamic_fields);
}

Json as_json(const Comparison& comparison, const std::string& file) {
    Json json{{"compared_with", file}};
    for (const Verdict verdict : {Verdict::same, Verdict::tied, Verdict::different})
        json[std::string(name(verdict))] = comparison.count(verdict);
    json["here_alone"] = comparison.here_alone;
    json["there_alone"] = comparison.there_alone;
    json["problems"] = Json::array();
    for (const Pair& pair : comparison.pairs) {
        Json object{{"problem", problem_text(pair.here->winner.trial.key)}, {"verdict", name(pair.verdict)}};
        for (const auto& [side, race] : {std::pair("here", pair.here), std::pair("there", pair.there)}) {
            object[side] = tuner::as_json(race->winner.trial);
            tuner::add_ties(race->ties, object[side]);
        }
        json["problems"].push_back(std::move(object));
    }
    return json;
}

/// Both winners of a problem where they are not the same.
std::string differing(const Pair& pair, const tuner::Page& page) {
    const cache::TuningKey& key = pair.here->winner.trial.key;
    const std::string heading =
        fmt::format("{}: {} on {}", name(pair.verdict), problem_text(key), key.gpu.name);
    tuner::Table table({{""}, {"us", Align::right}, {"tied with"}, {"winner"}});
    for (const auto& [side, race] : {std::pair("here", pair.here), std::pair("there", pair.there)}) {
        const cache::Trial& winner = race->winner.trial;
        table.add({side, tuner::format_us(winner.timing.median_us),
                   cache::describe_ties(race->ties.others.size(), race->ties.within), winner.candidate});
    }
    return '\n' + tuner::wrapped(tuner::split_words(runtime::escape_controls(heading)), page, "    ", "") +
           table.render(page, "  ");
}

std::string to_text(const Comparison& comparison, const std::string& file, const tuner::Page& page) {
    std::string text = fmt::format(
        "{} winners here and in {}: {} the same, {} tied, {} different; {} here alone, {} there alone\n",
        comparison.pairs.size(), runtime::escape_controls(file), comparison.count(Verdict::same),
        comparison.count(Verdict::tied), comparison.count(Verdict::different), comparison.here_alone,
        comparison.there_alone);
    for (const Verdict verdict : {Verdict::different, Verdict::tied}) {
        for (const Pair& pair : comparison.pairs) {
            if (pair.verdict == verdict) text += differing(pair, page);
        }
    }
    return text;
}

std::vector<StoredRace> selected_races(std::vector<StoredRace> there, const std::vector<StoredRace>& here,
                                       const Selection& selection) {
    Selected selected(selection);
    for (const auto* races : {&here, &std::as_const(there)}) {
        for (const StoredRace& race : *races) selected.consider(race.winner.trial);
    }
    std::erase_if(there, [&](const StoredRace& race) { return !selected.contains(race.winner.trial); });
    return there;
}

}  // namespace

Outcome compare_with_file(const std::vector<StoredRace>& here, const std::string& file,
                          const Selection& selection, const Console& console) {
    const std::vector<StoredRace> there = selected_races(races_of_file(file, console), here, selection);
    const Comparison comparison = compare(here, there);
    return {.data = as_json(comparison, file), .text = to_text(comparison, file, console.page)};
}

}  // namespace hone::cli
