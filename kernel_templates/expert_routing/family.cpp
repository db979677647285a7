// Routing, all of the family that is not declared: space and preference of both variants, rules, tolerance,
// work, and the reference's launch.
#include <algorithm>
#include <cmath>
#include <string>

#include "kernel_templates/expert_routing/blocks_plan.h"
#include "kernel_templates/expert_routing/one_block_plan.h"
#include "kernel_templates/kit/fixed_answers.h"
#include "kernel_templates/kit/rules.h"
#include "kernel_templates/kit/work.h"

namespace hone {
namespace expert_routing {
namespace {

constexpr std::int64_t most_pairs = std::int64_t{1} << 24;

constexpr auto tunables = tunables_of({
    tunable<&RoutingConfig::threads>("threads a block", {128, 256, 512, 1024}),
    tunable<&RoutingConfig::pairs>("pairs of token and slot that a block has room for",
                                   {64, 128, 256, 512, 1024}),
    programmatic_launch<&RoutingConfig::programmatic>(),
});

constexpr Constraint thread_for_each_expert =
    rule("a thread for each expert",
         [](const RoutingProblem& p, const RoutingConfig& c) { return c.threads >= p.experts; });
constexpr Constraint sets_fit =
    rule("the experts' sets of pairs must fit shared memory",
         [](const RoutingProblem& p, const RoutingConfig& c, const DeviceTraits& t) {
             return shared_bytes(p, c) + 1024 <= t.max_shared_bytes_per_block;
         });

constexpr Constraint one_block_constraints[] = {
    thread_for_each_expert,
    rule("a block has room for all pairs, the least that is enough",
         [](const RoutingProblem& p, const RoutingConfig& c) {
             return p.places() <= c.pairs && (c.pairs == 64 || c.pairs < 2 * p.places());
         }),
    sets_fit,
    programmatic_needs_sm_90<RoutingConfig>,
};
constexpr Constraint blocks_constraints[] = {thread_for_each_expert, sets_fit,
                                             programmatic_needs_sm_90<RoutingConfig>};

/// Modelled microseconds of a block's choices: warps go through their tokens, each in top_k rounds.
double choices_us(const RoutingProblem& p, const RoutingConfig& c, double tokens) {
    const double rounds = std::ceil(tokens / (static_cast<double>(c.threads) / 32));
    const double each = 0.02 * static_cast<double>(p.top_k) * (1 + static_cast<double>(p.experts) / 256);
    return 0.7 + rounds * (0.3 + each);
}
/// The same of clearing sets, counting and placing.
double order_us(const RoutingProblem& p, const RoutingConfig& c) {
    const double threads = static_cast<double>(c.threads);
    return 0.8 + 2.0 * static_cast<double>(p.experts * c.pairs) / 32 / threads * 0.01 +
           static_cast<double>(c.pairs) / threads * 0.1;
}
double launch_us(const RoutingConfig& c) { return c.programmatic != 0 ? 1.2 : 2.0; }

double predict_one_block(const RoutingProblem& p, const RoutingConfig& c, const DeviceTraits&) {
    return launch_us(c) + choices_us(p, c, static_cast<double>(p.tokens)) + order_us(p, c);
}
double predict_blocks(const RoutingProblem& p, const RoutingConfig& c, const DeviceTraits& traits) {
    const double launched = static_cast<double>(parts(p, c));
    const double waves = std::ceil(launched / (2.0 * traits.sm_count));
    const double in_block = choices_us(p, c, static_cast<double>(c.pairs / p.top_k)) + 2 * order_us(p, c);
    const double bytes = static_cast<double>(p.tokens * p.experts * p.element_bytes());
    return 3 * launch_us(c) + waves * in_block + 0.15 * launched / 8 +
           bytes / (0.8e-6 * traits.memory_bytes_per_s);
}

/// As few threads as experts and warps for tokens ask for.
RoutingConfig with_threads(const RoutingProblem& p, RoutingConfig c, const DeviceTraits& traits) {
    while (c.threads < p.experts) c.threads *= 2;
    c.programmatic = traits.has_programmatic_launch() ? 1 : 0;
    return c;
}
std::optional<RoutingConfig> one_block_fallback(const RoutingProblem& p, const DeviceTraits& traits) {
    if (p.places() > 512) return std::nullopt;
    RoutingConfig c{.threads = 512, .pairs = 64};
    while (c.pairs < p.places()) c.pairs *= 2;
    return with_threads(p, c, traits);
}
std::optional<RoutingConfig> blocks_fallback(const RoutingProblem& p, const DeviceTraits& traits) {
    return with_threads(p, {.threads = 256, .pairs = 256}, traits);
}

}  // namespace

const Variant one_block{.name = "one_block",
                        .summary = "few tokens: one block chooses, counts and orders",
                        .source = "expert_routing/one_block.cu",
                        .tunables = tunables,
                        .constraints = one_block_constraints,
                        .kernels = one_block_kernels,
                        .plan = typed<one_block_plan>,
                        .fallback = typed<one_block_fallback>,
                        .access_elements = accesses_of<1>,
                        .predict_us = typed<predict_one_block>};

const Variant blocks{.name = "blocks",
                     .summary = "any number of tokens: launches that choose and count, scan, and place",
                     .source = "expert_routing/blocks.cu",
                     .tunables = tunables,
                     .constraints = blocks_constraints,
                     .kernels = blocks_kernels,
                     .plan = typed<blocks_plan>,
                     .fallback = typed<blocks_fallback>,
                     .access_elements = accesses_of<1>,
                     .predict_us = typed<predict_blocks>};

namespace {

const Variant* const variants[] = {&one_block, &blocks};

std::string validate(const Problem& problem) {
    const RoutingProblem p(problem);
    if (p.top_k > p.experts)
        return "top_k is " + std::to_string(p.top_k) + "; allowed: at most experts, " +
               std::to_string(p.experts);
    if (p.places() > most_pairs)
        return "tokens x top_k is " + std::to_string(p.tokens) + " x " + std::to_string(p.top_k) +
               "; allowed: at most 2^24";
    return {};
}

/// Which experts and which order is a matter of no rounding; weights are made of exponentials in float32.
Tolerance tolerance(const Problem&, int argument) {
    if (argument != routing_weights) return {};
    return {.relative_l2 = 1e-5, .max_abs = 1e-7, .max_rel = 2e-5};
}

Work work(const Problem& problem) {
    const RoutingProblem p(problem);
    return {.bytes = bytes_of(declared_arguments(problem)),
            .flops = 2.0 * static_cast<double>(p.tokens) * static_cast<double>(p.experts)};
}

constexpr Kernel reference_kernels[] = {{"expert_routing_reference_choose", call_args},
                                        {"expert_routing_reference_order", call_args}};

Plan reference_plan(const Problem& problem) {
    const RoutingProblem p(problem);
    Plan plan = plan_of(launch(reference_kernels[0], grid_of(ceil_div(p.tokens, 128)), 128));
    plan.launches[1] = launch(reference_kernels[1], grid_of(1), 544);  // a thread more than experts
    plan.launch_count = 2;
    plan.workspace_bytes = 4 * p.places();
    return plan;
}

}  // namespace
}  // namespace expert_routing

extern const Family expert_routing_family;
const Family expert_routing_family = expert_routing::declared({
    .variants = expert_routing::variants,
    .validate = expert_routing::validate,
    .tolerance = expert_routing::tolerance,
    .work = expert_routing::work,
    .reference_source = "expert_routing/reference.cu",
    .reference_kernels = expert_routing::reference_kernels,
    .reference_plan = expert_routing::reference_plan,
});

}  // namespace hone
