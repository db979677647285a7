// The tunables of variant ring, which attention_append's has, too.
#pragma once

#include "kernel_templates/attention_decode/ring/plan.h"

namespace hone::attention_decode {

inline constexpr auto ring_tunables = tunables_of({
    tunable<&RingConfig::rows>("rows of a block: query tokens times heads that share a key-value head",
                               {8, 16}),
    tunable<&RingConfig::warps>("that compute", {4, 6, 8}),
    tunable<&RingConfig::unit>("tokens of a stage", {16, 32, 64}),
    tunable<&RingConfig::stages>("in shared memory", {4, 6, 8, 12, 16}),
    tunable<&RingConfig::producers>("warps that copy with cp.async; 0: the copy engine", {0, 4}),
    tunable<&RingConfig::cluster>("blocks that share a list of rows; 1: lists are cut anywhere",
                                  {1, 2, 4, 8, 16}),
    tunable<&RingConfig::join>("of lists that were cut: 0 a second launch, 1 the last block", {0, 1}),
    tunable<&RingConfig::side_by_side>(
        "1: blocks beside each other read neighbouring heads of the same tokens", {0, 1}),
    tunable<&RingConfig::blocks_per_sm>("resident blocks a multiprocessor", {1, 2}),
    tunable<&RingConfig::ahead>(
        "1: the next launch starts when all copies are under way, not at once; with cp.async each block has "
        "then asked level 2 for its first tokens while the call ahead ended",
        {0, 1}),
});

}  // namespace hone::attention_decode
