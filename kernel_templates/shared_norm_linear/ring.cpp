// Variant ring: the space of linear's, predicted as the product without a norm.
#include <vector>

#include "kernel_templates/kit/fallbacks.h"
#include "kernel_templates/kit/fixed_answers.h"
#include "kernel_templates/linear/ring/tunables.h"
#include "kernel_templates/linear/variants.h"
#include "kernel_templates/shared_norm_linear/as_linear.h"
#include "kernel_templates/shared_norm_linear/ring_plan.h"

namespace hone::shared_norm_linear {
namespace {

/// linear's, of which programmatic is of the launch alone: there a norm's launch is part of the image.
constexpr auto tunables = [] {
    auto all = linear::ring_tunables;
    all.back().of_launch_alone = true;
    return all;
}();

constexpr Constraint constraints[] = {
    rule("in front of a norm a block owns whole slots of squares",
         [](const SharedNormProblem& p, const RingConfig& c) {
             return !p.next_norm || c.rows / c.cluster_k % linear::square_columns == 0;
         }),
    {"what linear's ring asks for", allowed_as_linear<linear::ring>},
};

/// linear's, or the best of its neighbours whose tiles have whole slots.
std::optional<Config> fallback(const Problem& problem, const DeviceTraits& traits) {
    const std::optional<Config> theirs = linear::ring.fallback(linear_problem(problem), traits);
    if (!theirs || allowed(problem, {&ring, *theirs}, traits)) return theirs;
    std::vector<Config> neighbours;
    for (const RingConfig& c :
         combinations({values_of<RingConfig>(*theirs)}, linear::ring_tunables,
                      {&RingConfig::rows, &RingConfig::stage_columns, &RingConfig::stages}))
        neighbours.push_back(config_of(c));
    return best_of(problem, ring, neighbours, traits);
}

}  // namespace

const Variant ring{.name = "ring",
                   .summary = "linear's ring, whose finishing warps write squares, or multiply with factors",
                   .source = "shared_norm_linear/ring.cu",
                   .min_arch = {9, 0, true},
                   .tunables = tunables,
                   .constraints = constraints,
                   .kernels = ring_kernels,
                   .plan = typed<ring_plan>,
                   .fallback = fallback,
                   .access_elements = accesses_of<8>,
                   .predict_us = as_linear<linear::ring>};

}  // namespace hone::shared_norm_linear
