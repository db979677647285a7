#include "tuner/search/shortlist.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "cache/bundle.h"
#include "cache/ties.h"
#include "kernel_templates/catalog.h"

namespace hone::tuner {
namespace {

constexpr double slowest = 1.10;  // times the fastest
constexpr double bonus = 0.01;    // for a tunable that differs
constexpr int most_bonuses = 3;

/// The least difference from one that is chosen.
int novelty(const Candidate& candidate, const std::vector<MeasuredKernel>& chosen) {
    int least = std::numeric_limits<int>::max();
    for (const MeasuredKernel& other : chosen)
        least = std::min(least, difference(candidate, other.candidate));
    return least;
}

}  // namespace

int difference(const Candidate& a, const Candidate& b) {
    const std::size_t tunables = std::max(a.variant->tunables.size(), b.variant->tunables.size());
    if (a.variant != b.variant) return static_cast<int>(tunables);
    int differing = 0;
    for (std::size_t i = 0; i < tunables; ++i) differing += a.config[i] != b.config[i] ? 1 : 0;
    return differing;
}

std::vector<MeasuredKernel> shortlist(const std::vector<MeasuredKernel>& measured, std::size_t limit) {
    std::vector<MeasuredKernel> left = measured;
    std::ranges::stable_sort(left, {}, &MeasuredKernel::us);
    std::erase_if(left, [&, best = left.empty() ? 0 : left.front().us](const MeasuredKernel& kernel) {
        return kernel.us > slowest * best;
    });
    std::vector<MeasuredKernel> chosen;
    while (chosen.size() < limit && !left.empty()) {
        const auto next = std::ranges::min_element(left, {}, [&](const MeasuredKernel& kernel) {
            return kernel.us * (1 - bonus * std::min(most_bonuses, novelty(kernel.candidate, chosen)));
        });
        chosen.push_back(*next);
        left.erase(next);
    }
    return chosen;
}

std::vector<cache::Trial> contenders(const cache::Trial& winner, const std::vector<cache::Trial>& trials) {
    const Family* family = find_family(winner.key.family);
    if (family == nullptr) return {};
    std::map<std::string, cache::Trial> latest{{winner.candidate, winner}};
    for (const cache::Trial& trial : trials) {
        const bool is_alike = trial.toolchain == winner.toolchain && trial.provenance == winner.provenance;
        if (trial.winner || !is_alike || trial.candidate == winner.candidate) continue;
        latest.insert_or_assign(trial.candidate, trial);
    }
    std::vector<MeasuredKernel> measured;
    for (const auto& [text, trial] : latest) {
        if (const std::optional<Candidate> candidate = parse_candidate(*family, text))
            measured.push_back({*candidate, trial.timing.median_us});
    }
    std::vector<cache::Trial> chosen = cache::ties_of(winner, trials).others;
    std::erase_if(chosen,
                  [&](const cache::Trial& tied) { return !parse_candidate(*family, tied.candidate); });
    for (const MeasuredKernel& kernel : shortlist(measured, cache::most_contenders + 1)) {
        const std::string text = to_string(kernel.candidate);
        const bool is_there = text == winner.candidate ||
                              std::ranges::find(chosen, text, &cache::Trial::candidate) != chosen.end();
        if (!is_there) chosen.push_back(latest.at(text));
    }
    chosen.resize(std::min(chosen.size(), cache::most_contenders));
    return chosen;
}

}  // namespace hone::tuner
