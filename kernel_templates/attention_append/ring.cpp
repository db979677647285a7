// Variant ring: the space of attention_decode's, planned and predicted as the problem of attention_decode
// that is left.
#include "kernel_templates/attention_append/attention_append.h"
#include "kernel_templates/attention_decode/ring/tunables.h"
#include "kernel_templates/attention_decode/variants.h"
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

std::optional<Config> fallback(const Problem& problem, const DeviceTraits& traits) {
    const AppendProblem p(problem);
    if (p.rotary_dim % 16 != 0) return std::nullopt;
    const std::optional<Config> theirs = attention_decode::ring.fallback(decode_problem(problem), traits);
    if (!theirs) return theirs;
    const Config smaller = config_of(beside_others(p, values_of<RingConfig>(*theirs)));
    return allowed(problem, {&ring, smaller}, traits) ? smaller : theirs;
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
