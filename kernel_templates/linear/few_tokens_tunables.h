// The tunables of variants gemv and strips, which shared_norm_linear's have, too.
#pragma once

#include "kernel_templates/kit/rules.h"
#include "kernel_templates/linear/few_tokens.h"

namespace hone::linear {

inline constexpr auto gemv_tunables = tunables_of({
    tunable<&FewTokensConfig::tokens>("tokens of a block", {1, 2, 4, 8}),
    tunable<&FewTokensConfig::rows>("rows of the weight that a warp multiplies together", {1, 2, 4}),
    tunable<&FewTokensConfig::k_warps>("warps that share a row", {1, 2, 4, 8}),
    tunable<&FewTokensConfig::row_warps>("groups of them in a block", {1, 2, 4, 8}),
    tunable<&FewTokensConfig::unroll>("accesses to each row that a thread keeps in flight", {1, 2, 4}),
    tunable<&FewTokensConfig::load_hint>("of weights: 1 not into level 1, 3 and first to leave level 2",
                                         {1, 3}),
    tunable<&FewTokensConfig::blocks_per_sm>("0: a block takes one step; else resident blocks that walk",
                                             {0, 2, 4}),
    programmatic_launch<&FewTokensConfig::programmatic>(),
    tunable<&FewTokensConfig::fold_norm>("1: a norm is part of the products, 0: a launch before them",
                                         {0, 1}),
});

inline constexpr auto strips_tunables = tunables_of({
    tunable<&FewTokensConfig::tokens>("tokens of a block", {2, 4, 8}),
    tunable<&FewTokensConfig::rows>("rows of the weight that a warp multiplies together", {1, 2, 4, 8, 16}),
    tunable<&FewTokensConfig::k_warps>("warps that share a row", {1, 2, 4, 8, 16}),
    tunable<&FewTokensConfig::row_warps>("groups of them in a block", {1, 2, 4, 8}),
    tunable<&FewTokensConfig::unroll>("strips of each row that a warp keeps in flight", {1, 2, 4}),
    tunable<&FewTokensConfig::load_hint>("of weights: 1 not into level 1, 3 and first to leave level 2",
                                         {1, 3}),
    tunable<&FewTokensConfig::blocks_per_sm>("0: a block takes one step; else resident blocks that walk",
                                             {0, 2, 4}),
    programmatic_launch<&FewTokensConfig::programmatic>(),
    tunable<&FewTokensConfig::fold_norm>("0: a norm is a launch before the products", {0}),
});

}  // namespace hone::linear
