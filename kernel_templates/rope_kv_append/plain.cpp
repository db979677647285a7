#include <optional>

#include "kernel_templates/kit/rules.h"
#include "kernel_templates/rope_kv_append/plain_plan.h"
#include "kernel_templates/rope_kv_append/rank.h"
#include "kernel_templates/rope_kv_append/variants.h"

namespace hone::rope_kv_append {
namespace {

constexpr auto tunables = tunables_of({
    tunable<&PlainConfig::threads>("threads a block; a warp takes a head", {128, 256}),
    programmatic_launch<&PlainConfig::programmatic>(),
});

constexpr Constraint constraints[] = {programmatic_needs_sm_90<PlainConfig>};

double predict(const Problem& problem, const PlainConfig& c, const DeviceTraits& traits) {
    const RopeProblem p(problem);
    const double rounds = static_cast<double>(ceil_div(p.head_dim, 32));
    return predict_us(problem,
                      {.threads = static_cast<double>(p.tokens * p.all_heads() * 32),
                       .instructions = 80 + 40 * rounds,
                       .latency_us = 1.6 + 0.2 * rounds + (p.norm ? 0.4 : 0.0),
                       .slowdown = c.threads == 128 ? 1.5 : 1.51,
                       .programmatic = c.programmatic != 0},
                      traits);
}

std::optional<PlainConfig> fallback(const RopeProblem&, const DeviceTraits& traits) {
    return PlainConfig{.programmatic = traits.has_programmatic_launch() ? 1 : 0};
}

}  // namespace

const Variant plain{.name = "plain",
                    .summary = "a warp a head, element by element: any head_dim and alignment",
                    .source = "rope_kv_append/plain.cu",
                    .tunables = tunables,
                    .constraints = constraints,
                    .kernels = plain_kernels,
                    .plan = typed<plain_plan>,
                    .fallback = typed<fallback>,
                    .access_elements = typed<plain_access_elements>,
                    .predict_us = typed<predict>};

}  // namespace hone::rope_kv_append
