// Functions over a family's own problem and config types in the places where the contract (family.h) has
// Problem and Config:
//
//   double predict(const LinearProblem& p, const GemvConfig& c, const DeviceTraits& traits);
//   const Variant gemv{..., .plan = typed<plan>, .predict_us = typed<predict>, .fallback = typed<fallback>};
//   constexpr Constraint constraints[] = {
//       rule("blocks have 4 to 8 warps", [](const auto& p, const auto& c, const
//       auto&) {...}),
//   };
//
// A problem type is constructible from a Problem; a config type is a struct of kit/tunables.h.
#pragma once

#include <optional>
#include <string_view>
#include <type_traits>

#include "kernel_templates/family.h"
#include "kernel_templates/kit/tunables.h"

namespace hone {

template <auto function>
struct Typed;

/// plan, predict_us, access_elements: of problem and config, and whatever follows.
template <class Result, class P, class C, class... Rest, Result (*function)(const P&, const C&, Rest...)>
requires(!std::is_same_v<C, DeviceTraits>) struct Typed<function> {
    static Result call(const Problem& problem, const Config& config, Rest... rest) {
        return function(P(problem), values_of<C>(config), rest...);
    }
};

/// fallback: of the problem alone, which may be a plain Problem for best_of() (kit/fallbacks.h).
template <class C, class P, std::optional<C> (*function)(const P&, const DeviceTraits&)>
struct Typed<function> {
    static std::optional<Config> call(const Problem& problem, const DeviceTraits& traits) {
        const std::optional<C> values = function(P(problem), traits);
        if (!values) return std::nullopt;
        return config_of(*values);
    }
};

template <auto function>
inline constexpr auto typed = &Typed<function>::call;

/// What a rule asks for, made of what the contract gives: traits, a problem type, or a config's struct.
template <class T>
[[nodiscard]] constexpr T asked_for(const Problem& problem, const Config& config,
                                    const DeviceTraits& traits) {
    if constexpr (std::is_same_v<T, DeviceTraits>) {
        return traits;
    } else if constexpr (std::is_constructible_v<T, const Problem&>) {
        return T(problem);
    } else {
        return values_of<T>(config);
    }
}

/// Whether asked_for() makes it of the config.
template <class T>
inline constexpr bool is_of_config =
    !std::is_same_v<T, DeviceTraits> && !std::is_constructible_v<T, const Problem&>;

template <class Rule, class... Asked>
[[nodiscard]] consteval Constraint rule_over(std::string_view reason, std::size_t decided_by,
                                             bool (Rule::*)(const Asked&...) const) {
    return {reason,
            [](const Problem& problem, const Config& config, const DeviceTraits& traits) {
                return Rule{}(asked_for<Asked>(problem, config, traits)...);
            },
            (is_of_config<Asked> || ...) ? decided_by : 0};
}

/// A constraint: its rule is a lambda without captures over const references to what it needs of the problem
/// type, the config's struct and DeviceTraits, in any order, and returns bool.
template <class Rule>
[[nodiscard]] consteval Constraint rule(std::string_view reason, Rule) {
    return rule_over<Rule>(reason, max_tunables, &Rule::operator());
}

/// The same of a large space: `decided_by` is through() the last tunable that makes a difference to it.
template <class Rule>
[[nodiscard]] consteval Constraint rule(std::string_view reason, std::size_t decided_by, Rule) {
    return rule_over<Rule>(reason, decided_by, &Rule::operator());
}

/// How many tunables there are from the first one to this, a member of the config's struct C.
template <class C>
[[nodiscard]] consteval std::size_t through(std::int64_t C::*member) {
    return index_of<C>(member) + 1;
}

}  // namespace hone
