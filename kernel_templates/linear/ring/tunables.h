// The tunables of variant ring, which shared_norm_linear's has, too.
#pragma once

#include "kernel_templates/kit/rules.h"
#include "kernel_templates/linear/ring/plan.h"

namespace hone::linear {

inline constexpr auto ring_tunables = tunables_of({
    tunable<&RingConfig::tokens>("of a block, all of them", {1, 2, 4, 8, 16, 24, 32, 48, 64}),
    tunable<&RingConfig::rows>(
        "results of a tile, a token",
        {8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120, 128, 136, 144, 160, 192, 224, 256}),
    tunable<&RingConfig::consumers>("warpgroups that take the stages in turns", {2, 4}),
    tunable<&RingConfig::stage_columns>("columns of a stage", {64, 128, 256, 512}),
    tunable<&RingConfig::stages>("in shared memory", {4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 32}),
    tunable<&RingConfig::cluster_k>("blocks of a cluster that share a tile, each with a part of the columns",
                                    {1, 2}),
    tunable<&RingConfig::early>("what weights fill before the wait for x: 1: half of the stages, 2: all",
                                {1, 2}),
    of_launch_alone(tunable<&RingConfig::spread>(
        "1: blocks on all multiprocessors, though some take a tile less", {0, 1})),
    programmatic_launch<&RingConfig::programmatic>(),
});

}  // namespace hone::linear
