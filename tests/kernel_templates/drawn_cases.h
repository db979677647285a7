// What tests over many problems share: each drawn problem of a family on each device, candidates of a space,
// spaces that several cases look at, and a candidate's tunables by name.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernel_templates/family.h"
#include "kernel_templates/space.h"
#include "tests/support/drawn_problem.h"

namespace hone::test {

template <class Check>
void for_every_device(const Problem& problem, Check check) {
    for (const Arch arch : supported_archs()) {
        INFO(to_string(problem) << " on " << to_string(arch));
        check(problem, *representative_device(arch));
    }
}

template <class Check>
void for_every_problem_and_device(const Family& family, int problems, Check check) {
    for (const Problem& problem : drawn_problems(family, problems)) for_every_device(problem, check);
}

/// About so many of the variant's allowed candidates, spread over its space.
template <class Check>
void for_some_candidates(const Problem& problem, const Variant& variant, const DeviceTraits& traits,
                         std::size_t count, Check check) {
    const std::vector<Config> configs = enumerate(problem, variant, traits);
    for (std::size_t i = 0; i < configs.size(); i += 1 + configs.size() / count) {
        const Candidate candidate{&variant, configs[i]};
        INFO(to_string(candidate));
        check(candidate);
    }
}

/// enumerate() on an H100, once a program: spaces of millions of declared configs take a second each under
/// sanitizers, and cases of a file look at the same ones.
inline const std::vector<Config>& space_on_h100(const Problem& problem, const Variant& variant) {
    static std::map<std::pair<const Variant*, std::string>, std::vector<Config>> known;
    const auto [found, is_new] = known.try_emplace({&variant, to_string(problem)});
    if (is_new) found->second = enumerate(problem, variant, *representative_device({9, 0, true}));
    return found->second;
}

/// Every config of a variant on an H100, for each shape of its family with each of these numbers of tokens.
template <class Check>
void for_every_config(const Variant& variant, const std::string& family,
                      const std::vector<std::string>& shapes, const std::vector<int>& token_counts,
                      Check check) {
    for (const std::string& shape : shapes) {
        for (const int tokens : token_counts) {
            const Problem problem =
                *parse_problem(family + ' ' + shape + " tokens=" + std::to_string(tokens));
            for (const Config& config : space_on_h100(problem, variant)) {
                INFO(to_string(problem) << " | " << to_string(Candidate{&variant, config}));
                check(problem, config);
            }
        }
    }
}

inline std::int64_t tunable(const Candidate& candidate, std::string_view name) {
    const auto found = std::ranges::find(candidate.variant->tunables, name, &Tunable::name);
    REQUIRE(found != candidate.variant->tunables.end());
    return candidate.config[static_cast<std::size_t>(found - candidate.variant->tunables.begin())];
}

}  // namespace hone::test
