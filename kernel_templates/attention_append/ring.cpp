// Variant ring: the space of attention_decode's, planned and predicted as the problem of attention_decode
// that is left.
#include <vector>

#include "kernel_templates/attention_append/attention_append.h"
#include "kernel_templates/attention_decode/ring/tunables.h"
#include "kernel_templates/attention_decode/variants.h"
#include "kernel_templates/kit/fallbacks.h"
#include "kernel_templates/kit/fixed_answers.h"
#include "kernel_templates/kit/typed.h"

namespace hone::attention_append {
namespace {

using attention_decode::RingConfig;

constexpr auto kernel_args = join(call_args, {tensor_map_arg(0, "k_map"), tensor_map_arg(1, "v_map")});
constexpr Kernel kernels[] = {{"attention_append_ring", kernel_args},
                              {"attention_decode_combine", call_args}};

constexpr attention_decode::CacheScalars cache_scalars{.kv_len = kv_len,
                                                       .batch = batch,
                                                       .pool_pages = pool_pages,
                                                       .token_stride = cache_token_stride,
                                                       .head_stride = cache_head_stride,
                                                       .stride = cache_stride};

Plan plan(const Problem& problem, const Config& config, const DeviceTraits& traits) {
    const attention_decode::DecodeProblem p = left_of(AppendProblem(problem));
    const auto c = values_of<RingConfig>(config);
    const attention_decode::Ring shape = attention_decode::shape(p, c);
    Plan plan = attention_decode::ring_launches(kernels, p, c, traits);
    add_map(plan, attention_decode::cache_map(p, shape, k_cache, cache_scalars));
    add_map(plan, attention_decode::cache_map(p, shape, v_cache, cache_scalars));
    return plan;
}

constexpr Constraint constraints[] = {
    rule("both partners of a rotation are columns of one lane: rotary_dim is a multiple of 16",
         [](const AppendProblem& p) { return p.rotary_dim % 16 == 0; }),
    {"what attention_decode's ring asks for",
     [](const Problem& problem, const Config& config, const DeviceTraits& traits) {
         return allowed(decode_problem(problem), {&attention_decode::ring, config}, traits);
     }},
};

/// Units of 32 tokens whose pages warps of their own bring: 2 % behind the best in the mean of 1, 8 and 64
/// sequences with five numbers of heads (H200), where what attention_decode's ring would choose lost 12 %.
std::optional<RingConfig> best_over_pages(const Problem& problem, const DeviceTraits& traits) {
    std::vector<RingConfig> configs = combinations<RingConfig>(
        {{.unit = 32, .stages = 12, .producers = 4},
         {.unit = 32, .stages = 8, .producers = 4},
         {.unit = 32, .stages = 4, .producers = 4}},
        attention_decode::ring_tunables,
        {&RingConfig::rows, &RingConfig::cluster, &RingConfig::side_by_side, &RingConfig::blocks_per_sm});
    std::erase_if(configs, [](const RingConfig& c) { return c.cluster == 16; });
    return best_of<RingConfig>(problem, ring, configs, traits);
}

std::optional<Config> fallback(const Problem& problem, const DeviceTraits& traits) {
    const AppendProblem p(problem);
    if (p.rotary_dim % 16 != 0) return std::nullopt;
    std::optional<RingConfig> best;
    if (p.page_size > 0) best = best_over_pages(problem, traits);
    if (!best) {
        const std::optional<Config> theirs = attention_decode::ring.fallback(decode_problem(problem), traits);
        if (!theirs) return theirs;
        best = values_of<RingConfig>(*theirs);
        // Two blocks leave a thread 128 registers, in which larger heads cannot be turned without spills.
        constexpr std::int64_t most_beside_another = 72;
        if (p.head_dim > most_beside_another) best->blocks_per_sm = 1;
    }
    const Config smaller = config_of(beside_others(p, *best));
    return allowed(problem, {&ring, smaller}, traits) ? smaller : config_of(*best);
}

double predict(const Problem& problem, const Config& config, const DeviceTraits& traits) {
    return predicted_us(decode_problem(problem), {&attention_decode::ring, config}, traits);
}

}  // namespace

const Variant ring{.name = "ring",
                   .summary = "attention_decode's ring; the newest key and value go into its shared memory",
                   .source = "attention_append/ring.cu",
                   .min_arch = {9, 0, false},
                   .tunables = attention_decode::ring_tunables,
                   .constraints = constraints,
                   .kernels = kernels,
                   .plan = plan,
                   .fallback = fallback,
                   .access_elements = accesses_of<8>,
                   .predict_us = predict};

}  // namespace hone::attention_append
