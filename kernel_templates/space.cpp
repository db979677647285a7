#include "kernel_templates/space.h"

#include <algorithm>
#include <array>
#include <utility>

namespace hone {
namespace {

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

// Spaces have millions of declared configs, which why_not() would ask for what is the same for all of them.
std::vector<Config> enumerate(const Problem& problem, const Variant& variant, const DeviceTraits& traits) {
    if (!runs_on(variant, traits)) return {};
    std::vector<const Constraint*> of_config;
    for (const Constraint& constraint : variant.constraints) {
        if (constraint.reads_config) {
            of_config.push_back(&constraint);
        } else if (!constraint.holds(problem, {}, traits)) {
            return {};
        }
    }
    std::vector<Config> configs;
    for_each_config(variant, [&](const Config& config) {
        const auto holds = [&](const Constraint* constraint) {
            return constraint->holds(problem, config, traits);
        };
        if (std::ranges::all_of(of_config, holds)) configs.push_back(config);
    });
    return configs;
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
