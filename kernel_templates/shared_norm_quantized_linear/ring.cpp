// Variant ring: the space of quantized_linear's, predicted as the product without a norm.
#include "kernel_templates/kit/fixed_answers.h"
#include "kernel_templates/quantized_linear/ring/tunables.h"
#include "kernel_templates/quantized_linear/variants.h"
#include "kernel_templates/shared_norm_quantized_linear/ring_plan.h"

namespace hone::shared_norm_quantized_linear {
namespace {

/// quantized_linear's, of which programmatic is of the launch alone: there a norm's launch is part of the
/// image.
constexpr auto tunables = [] {
    auto all = quantized_linear::ring_tunables;
    all.back().of_launch_alone = true;
    return all;
}();

constexpr Constraint constraints[] = {
    rule("factors of tokens must fit shared memory, too, as often as blocks are resident",
         [](const SharedNormQuantizedProblem& p, const RingConfig& c, const DeviceTraits& t) {
             const std::int64_t bytes = geometry(p, c).shared_bytes();
             return bytes <= t.max_shared_bytes_per_block &&
                    c.blocks_per_sm * (bytes + 1024) <= t.shared_bytes_per_sm;
         }),
    {"what quantized_linear's ring asks for",
     [](const Problem& problem, const Config& config, const DeviceTraits& traits) {
         return allowed(quantized_problem(problem), {&quantized_linear::ring, config}, traits);
     }},
};

double predict(const Problem& problem, const Config& config, const DeviceTraits& traits) {
    return predicted_us(quantized_problem(problem), {&quantized_linear::ring, config}, traits);
}

std::optional<Config> fallback(const Problem& problem, const DeviceTraits& traits) {
    const std::optional<Config> theirs = quantized_linear::ring.fallback(quantized_problem(problem), traits);
    if (!theirs || !allowed(problem, {&ring, *theirs}, traits)) return std::nullopt;
    return theirs;
}

}  // namespace

const Variant ring{
    .name = "ring",
    .summary = "quantized_linear's ring, whose finishing warps write squares, or multiply with factors",
    .source = "shared_norm_quantized_linear/ring.cu",
    .min_arch = {9, 0, false},
    .tunables = tunables,
    .constraints = constraints,
    .kernels = ring_kernels,
    .plan = typed<ring_plan>,
    .fallback = fallback,
    .access_elements = accesses_of<16>,
    .predict_us = predict};

}  // namespace hone::shared_norm_quantized_linear
