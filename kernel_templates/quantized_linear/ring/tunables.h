// The tunables of variant ring, which shared_norm_quantized_linear's has, too.
#pragma once

#include "kernel_templates/kit/rules.h"
#include "kernel_templates/quantized_linear/ring/plan.h"

namespace hone::quantized_linear {

inline constexpr auto ring_tunables = tunables_of({
    tunable<&RingConfig::tokens>("of a block, all of them", {8, 16, 32, 64}),
    tunable<&RingConfig::rows>("results of a tile, a token", {64, 128, 256}),
    tunable<&RingConfig::warp_rows>("rows of the weight that a warp multiplies", {16, 32, 64}),
    tunable<&RingConfig::k_warps>("warps that share them", {1, 2, 4}),
    tunable<&RingConfig::stage_columns>("columns of a stage", {128, 256, 512}),
    tunable<&RingConfig::stages>("in shared memory", {3, 4, 6, 8}),
    tunable<&RingConfig::cluster_k>("blocks that share the columns of a tile, and add up their sums",
                                    {1, 2, 4, 8}),
    of_launch_alone(tunable<&RingConfig::tiles>("that a block takes one after another",
                                                {1, 2, 3, 4, 5, 6, 8, 10, 14, 20, 28})),
    tunable<&RingConfig::blocks_per_sm>("that a multiprocessor has room for", {1, 2, 3, 4}),
    tunable<&RingConfig::x_streams>("1: x passes through the ring, 0: it stays for all tiles", {0, 1}),
    programmatic_launch<&RingConfig::programmatic>(),
});

}  // namespace hone::quantized_linear
