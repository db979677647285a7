#include "kernel_templates/space.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace hone {
namespace {

/// Calls `visit` for every combination of declared values, the last tunable fastest.
void for_each_config(const Variant& variant, const std::function<void(const Config&)>& visit) {
    const std::size_t count = variant.tunables.size();
    std::array<std::size_t, max_tunables> digits{};
    while (true) {
        Config config;
        for (std::size_t i = 0; i < count; ++i) config[i] = variant.tunables[i].values.items[digits[i]];
        visit(config);
        std::size_t position = count;
        while (position > 0 && ++digits[position - 1] == variant.tunables[position - 1].values.count) {
            digits[--position] = 0;
        }
        if (position == 0) return;
    }
}

}  // namespace

std::vector<Config> enumerate(const Problem& problem, const Variant& variant, const DeviceTraits& traits) {
    std::vector<Config> configs;
    for_each_config(variant, [&](const Config& config) {
        if (allowed(problem, {&variant, config}, traits)) configs.push_back(config);
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
    for_each_config(variant, [&](const Config& config) {
        ++count.declared;
        const std::string_view reason = why_not(problem, {&variant, config}, traits);
        if (reason.empty()) {
            ++count.allowed;
            return;
        }
        const auto broken = std::ranges::find(variant.constraints, reason, &Constraint::reason);
        ++count.rejected_by[static_cast<std::size_t>(broken - variant.constraints.begin())];
    });
    return count;
}

}  // namespace hone
