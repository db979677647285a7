#include "kernel_templates/space.h"

#include <algorithm>
#include <array>
#include <utility>

namespace hone {
namespace {

/// The constraints that are decided by so many tunables, and by no fewer.
using Decided = std::array<std::vector<const Constraint*>, max_tunables + 1>;

Decided decided_constraints(const Variant& variant) {
    Decided decided;
    for (const Constraint& constraint : variant.constraints)
        decided[std::min(constraint.decided_by, variant.tunables.size())].push_back(&constraint);
    return decided;
}

/// Depth first, the last tunable fastest: of values that break a constraint nothing that begins with them is
/// looked at.
class Enumeration {
  public:
    Enumeration(const Problem& problem, const Variant& variant, const DeviceTraits& traits)
        : problem_(problem), variant_(variant), traits_(traits), decided_(decided_constraints(variant)) {
        for (std::size_t i = 0; i < variant.tunables.size(); ++i)
            config_[i] = variant.tunables[i].values.items[0];
    }
    std::vector<Config> all() {
        if (runs_on(variant_, traits_)) go_on_from(0);
        return std::move(found_);
    }

  private:
    void go_on_from(std::size_t tunable) {
        const auto holds = [&](const Constraint* constraint) {
            return constraint->holds(problem_, config_, traits_);
        };
        if (!std::ranges::all_of(decided_[tunable], holds)) return;
        if (tunable == variant_.tunables.size()) {
            found_.push_back(config_);
            return;
        }
        const std::span<const std::int64_t> values = variant_.tunables[tunable].values.span();
        for (const std::int64_t value : values) {
            config_[tunable] = value;
            go_on_from(tunable + 1);
        }
        config_[tunable] = values.front();
    }

    const Problem& problem_;
    const Variant& variant_;
    const DeviceTraits& traits_;
    Decided decided_;
    Config config_;
    std::vector<Config> found_;
};

/// Calls `visit` for every combination of declared values, the last tunable fastest.
template <class Visit>
void for_each_config(const Variant& variant, Visit visit) {
    const std::span<const Tunable> tunables = variant.tunables;
    std::array<std::size_t, max_tunables> digits{};
    Config config;
    for (std::size_t i = 0; i < tunables.size(); ++i) config[i] = tunables[i].values.items[0];
    while (true) {
        visit(std::as_const(config));
        std::size_t i = tunables.size();
        while (i > 0 && ++digits[i - 1] == tunables[i - 1].values.count) {
            digits[--i] = 0;
            config[i] = tunables[i].values.items[0];
        }
        if (i == 0) return;
        config[i - 1] = tunables[i - 1].values.items[digits[i - 1]];
    }
}

}  // namespace

std::vector<Config> enumerate(const Problem& problem, const Variant& variant, const DeviceTraits& traits) {
    return Enumeration(problem, variant, traits).all();
}

std::vector<RankedCandidate> ranked_space(const Problem& problem, const DeviceTraits& traits) {
    std::vector<RankedCandidate> space;
    for (const Variant* variant : problem.family->variants) {
        const Correction correction(problem, *variant, traits);
        for (const Config& config : enumerate(problem, *variant, traits)) {
            const double us = variant->predict_us(problem, config, traits) * correction.factor(config);
            space.push_back({{variant, config}, us});
        }
    }
    std::ranges::stable_sort(space, {}, &RankedCandidate::predicted_us);
    return space;
}

std::vector<Candidate> with_other_values(const Problem& problem, const Candidate& candidate,
                                         std::size_t tunable, const DeviceTraits& traits) {
    std::vector<Candidate> others;
    for (const std::int64_t value : candidate.variant->tunables[tunable].values.span()) {
        Candidate other = candidate;
        other.config[tunable] = value;
        if (other != candidate && allowed(problem, other, traits)) others.push_back(std::move(other));
    }
    return others;
}

SpaceCount count_space(const Problem& problem, const Variant& variant, const DeviceTraits& traits) {
    SpaceCount count;
    count.rejected_by.assign(variant.constraints.size() + 1, 0);
    const bool runs = runs_on(variant, traits);
    for_each_config(variant, [&](const Config& config) {
        ++count.declared;
        const auto broken = std::ranges::find_if(variant.constraints, [&](const Constraint& constraint) {
            return runs && !constraint.holds(problem, config, traits);
        });
        if (runs && broken == variant.constraints.end()) {
            ++count.allowed;
        } else {
            ++count.rejected_by[static_cast<std::size_t>(broken - variant.constraints.begin())];
        }
    });
    return count;
}

}  // namespace hone
