// What the cases of linear (linear_test.cpp) and those of its variant wgmma (linear_wgmma_test.cpp) share.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "kernel_templates/catalog.h"
#include "kernel_templates/linear/linear.h"
#include "kernel_templates/space.h"

namespace hone::linear_cases {

inline Problem problem_of(const std::string& text) { return *parse_problem("linear " + text); }

inline std::int64_t tunable(const Candidate& candidate, std::string_view name) {
    const auto found = std::ranges::find(candidate.variant->tunables, name, &Tunable::name);
    REQUIRE(found != candidate.variant->tunables.end());
    return candidate.config[static_cast<std::size_t>(found - candidate.variant->tunables.begin())];
}

inline const std::vector<std::string> shapes{
    "dtype=bf16 in=4096 out=4096",
    "dtype=fp16 in=14336 out=4096",
    "dtype=bf16 in=4096 out=14336 gated=yes activation=silu",
    "dtype=bf16 in=18944 out=3584 bias=yes residual=yes activation=gelu_erf",
    "dtype=bf16 in=1024 out=1000",
    "dtype=fp32 in=768 out=3072 bias=yes activation=relu",
    "dtype=fp16 in=77 out=5",
    "dtype=bf16 in=8 out=8",
    "dtype=bf16 in=4096 out=32003"};
inline const std::vector<std::int64_t> token_counts{1, 3, 8, 17, 64, 128, 333, 8192};

}  // namespace hone::linear_cases
