// What variants choose their fallback configs with: preference, never part of a template's hash.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "kernel_templates/family.h"
#include "kernel_templates/kit/tunables.h"

namespace hone {

/// The allowed config of the variant that its cost model likes best, the first of equals; nothing where none
/// is allowed.
[[nodiscard]] std::optional<Config> best_of(const Problem&, const Variant&, std::span<const Config>,
                                            const DeviceTraits&);

/// best_of() for configs as their structs.
template <class C>
[[nodiscard]] std::optional<C> best_of(const Problem& problem, const Variant& variant,
                                       std::span<const C> configs, const DeviceTraits& traits) {
    std::vector<Config> plain;
    for (const C& values : configs) plain.push_back(config_of(values));
    const std::optional<Config> best = best_of(problem, variant, std::span<const Config>(plain), traits);
    if (!best) return std::nullopt;
    return values_of<C>(*best);
}

/// Each start with every combination of the values of the varied tunables, allowed or not, later tunables
/// fastest: for a fallback to choose from.
template <class C>
[[nodiscard]] std::vector<C> combinations(std::vector<C> starts, std::span<const Tunable> tunables,
                                          std::initializer_list<std::int64_t C::*> varied) {
    for (std::int64_t C::*const member : varied) {
        std::vector<C> next;
        for (const C& values : starts) {
            for (const std::int64_t value : tunables[index_of(member)].values.span()) {
                next.push_back(values);
                next.back().*member = value;
            }
        }
        starts = std::move(next);
    }
    return starts;
}
template <class C>
[[nodiscard]] std::vector<C> combinations(std::initializer_list<C> starts, std::span<const Tunable> tunables,
                                          std::initializer_list<std::int64_t C::*> varied) {
    return combinations(std::vector<C>(starts), tunables, varied);
}

}  // namespace hone
