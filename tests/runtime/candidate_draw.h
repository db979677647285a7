// Which candidates the tests on a GPU try. An image takes seconds to compile and milliseconds to run, so that
// few images have to show much: each is drawn for the pairs of values that no other has had, and tried at
// every size that it is allowed at. The same ones in every run of the same case.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "kernel_templates/catalog.h"
#include "kernel_templates/space.h"

namespace hone::test {

/// Pairs of values that the configs of a variant have had: of two tunables, or of a tunable and a field of
/// the problem. What is wrong mostly takes one value or two of them together (Kuhn, Wallace and Gallo, IEEE
/// Transactions on Software Engineering 30(6), 2004): candidates with new pairs find among few what takes
/// random ones many.
class SeenPairs {
  public:
    [[nodiscard]] std::size_t added_by(const Problem& problem, const Variant& variant,
                                       const Config& config) const {
        std::size_t added = 0;
        visit(problem, variant, config, [&](std::uint64_t pair) { added += seen_.contains(pair) ? 0 : 1; });
        return added;
    }
    void add(const Problem& problem, const Variant& variant, const Config& config) {
        visit(problem, variant, config, [&](std::uint64_t pair) { seen_.insert(pair); });
    }
    [[nodiscard]] std::size_t count() const { return seen_.size(); }

  private:
    [[nodiscard]] static std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
        hash = (hash ^ value) * 0x9e3779b97f4a7c15;
        return hash ^ hash >> 29;
    }
    template <class Visit>
    static void visit(const Problem& problem, const Variant& variant, const Config& config, Visit visit) {
        const auto named = [](std::size_t place, std::int64_t value) {
            return mixed(mixed(0x243f6a8885a308d3, place), static_cast<std::uint64_t>(value));
        };
        for (std::size_t i = 0; i < variant.tunables.size(); ++i) {
            const std::uint64_t one = named(i, config[i]);
            for (std::size_t j = 0; j < i; ++j) visit(mixed(one, named(j, config[j])));
            for (std::size_t field = 0; field < problem.family->fields.size(); ++field)
                visit(mixed(one, named(max_tunables + field, problem[field])));
        }
    }

    std::unordered_set<std::uint64_t> seen_;
};

using CandidateTest = std::function<bool(const Candidate&)>;
inline bool any_candidate(const Candidate&) { return true; }

class CandidateDraw {
  public:
    explicit CandidateDraw(const DeviceTraits& traits) : traits_(traits) {}

    /// The problem's fallback, which any caller of a library may get, and `each` configs of each variant;
    /// where that is one, the fallback stands for its variant every second time.
    [[nodiscard]] std::vector<Candidate> with_fallback(const Problem& problem, std::size_t each,
                                                       const CandidateTest& suits) {
        const Candidate first = *fallback(problem, traits_);
        const auto is_other = [&](const Candidate& one) { return one != first && suits(one); };
        std::vector<Candidate> chosen;
        if (suits(first)) chosen.push_back(first);
        for (const Variant* variant : problem.family->variants) {
            if (!runs_on(*variant, traits_)) continue;
            const bool stands_for_it = each == 1 && variant == first.variant && suits(first);
            if (stands_for_it && ++fallbacks_[variant] % 2 == 0) continue;
            const std::vector<Candidate> drawn = of_variant(problem, *variant, each, is_other);
            chosen.insert(chosen.end(), drawn.begin(), drawn.end());
        }
        note(problem, first);
        return chosen;
    }

    /// `count` configs that suit, fewer where there are fewer: all that were drawn before for these static
    /// fields, and new ones where these are not enough.
    [[nodiscard]] std::vector<Candidate> of_variant(const Problem& problem, const Variant& variant,
                                                    std::size_t count, const CandidateTest& suits) {
        std::vector<Candidate> chosen;
        const std::vector<Config> known = known_[{&variant, static_text(problem)}];
        for (const Config& config : known) {
            const Candidate candidate{&variant, config};
            if (allowed(problem, candidate, traits_) && suits(candidate)) chosen.push_back(candidate);
        }
        if (chosen.size() < count) {
            std::vector<Config> open = some_of(problem, variant, [&](const Config& config) {
                return std::ranges::find(known, config) == known.end() && suits({&variant, config});
            });
            while (chosen.size() < count && !open.empty()) {
                const auto best = std::ranges::max_element(open, {}, [&](const Config& config) {
                    return seen_[&variant].added_by(problem, variant, config);
                });
                chosen.push_back({&variant, *best});
                note(problem, chosen.back());
                open.erase(best);
            }
        }
        return chosen;
    }

  private:
    static constexpr std::size_t most_compared = 256;

    /// Other ones for other static fields, in an order of chance.
    [[nodiscard]] std::vector<Config> some_of(const Problem& problem, const Variant& variant,
                                              const std::function<bool(const Config&)>& wanted) const {
        const std::size_t seed = std::hash<std::string>()(static_text(problem));
        std::vector<std::pair<std::uint64_t, Config>> drawn;
        for (const Config& config : enumerate(problem, variant, traits_)) {
            std::uint64_t place = seed;
            for (const std::int64_t value : config.values) {
                place = (place ^ static_cast<std::uint64_t>(value)) * 0x9e3779b97f4a7c15;
                place ^= place >> 29;
            }
            drawn.emplace_back(place, config);
        }
        std::ranges::sort(drawn);
        std::vector<Config> some;
        for (const auto& [_, config] : drawn) {
            if (some.size() < most_compared && wanted(config)) some.push_back(config);
        }
        return some;
    }

    void note(const Problem& problem, const Candidate& candidate) {
        std::vector<Config>& known = known_[{candidate.variant, static_text(problem)}];
        if (std::ranges::find(known, candidate.config) == known.end()) known.push_back(candidate.config);
        seen_[candidate.variant].add(problem, *candidate.variant, candidate.config);
    }

    DeviceTraits traits_;
    std::map<const Variant*, int> fallbacks_;
    std::map<const Variant*, SeenPairs> seen_;
    std::map<std::pair<const Variant*, std::string>, std::vector<Config>> known_;
};

}  // namespace hone::test
