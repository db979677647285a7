// Variant plain: its space and preference.
#include "kernel_templates/kit/rules.h"
#include "kernel_templates/shared_norm_linear/plain_plan.h"

namespace hone::shared_norm_linear {
namespace {

constexpr auto tunables = tunables_of({
    tunable<&PlainConfig::tokens>("of a block", {1, 4, 8}),
    programmatic_launch<&PlainConfig::programmatic>(),
});

constexpr Constraint constraints[] = {programmatic_needs_sm_90<PlainConfig>};

std::optional<PlainConfig> fallback(const SharedNormProblem& p, const DeviceTraits& traits) {
    return PlainConfig{.tokens = p.tokens > 4   ? 8
                                 : p.tokens > 1 ? 4
                                                : 1,
                       .programmatic = traits.has_programmatic_launch() ? 1 : 0};
}

std::int64_t access_elements(const SharedNormProblem&, const PlainConfig&) { return 1; }

/// Modelled microseconds: a fifth of the bandwidth, and x from level 1 for each column.
double predict(const SharedNormProblem& p, const PlainConfig& c, const DeviceTraits& traits) {
    const double groups = static_cast<double>(ceil_div(p.tokens, c.tokens));
    const double elements = static_cast<double>(p.out) * static_cast<double>(p.in) * (p.gated ? 2 : 1);
    return 10.0 +
           groups * elements * (2.0 + static_cast<double>(c.tokens)) / (0.2e-6 * traits.memory_bytes_per_s);
}

}  // namespace

const Variant plain{.name = "plain",
                    .summary = "a warp a column, on CUDA cores; right everywhere, and slow",
                    .source = "shared_norm_linear/plain.cu",
                    .tunables = tunables,
                    .constraints = constraints,
                    .kernels = plain_kernels,
                    .plan = typed<plain_plan>,
                    .fallback = typed<fallback>,
                    .access_elements = typed<access_elements>,
                    .predict_us = typed<predict>};

}  // namespace hone::shared_norm_linear
