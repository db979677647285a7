#include "kernel_templates/kit/typed.h"
#include "kernel_templates/kit/work.h"
#include "kernel_templates/quantize_weights/trials.h"
#include "kernel_templates/quantize_weights/variants.h"
#include "kernel_templates/quantize_weights/warps_plan.h"

namespace hone::quantize_weights {
namespace {

constexpr auto tunables = tunables_of({
    tunable<&WarpsConfig::threads>("threads a block of the launch that finds the scales", {64, 128, 256}),
});

/// Issue slots of the search, at nine instructions a value and trial; trials go 32 at a time, so that some
/// lanes idle, which the factor 1.3 stands for. Else memory: the weights are read twice.
double predict(const Problem& problem, const WarpsConfig& c, const DeviceTraits& traits) {
    const WeightProblem p(problem);
    const double values = static_cast<double>(p.in) * static_cast<double>(p.out);
    const double lanes_per_us = 128e-3 * traits.sm_clock_khz * traits.sm_count;
    const double steps = trials(p) == 1 ? 0 : 9 * 1.3 * static_cast<double>(trials(p));
    const double encode_steps = 30;
    const double tail_us = 0.1 * static_cast<double>(c.threads) / 64;
    const double weights = values * static_cast<double>(p.element_bytes());
    const double bytes = bytes_of(declared_arguments(problem)) + weights;
    const double bandwidth = 0.86e-6 * static_cast<double>(traits.memory_bytes_per_s);
    return 3 + tail_us + values * (steps + encode_steps) / lanes_per_us + bytes / bandwidth;
}

std::optional<WarpsConfig> fallback(const WeightProblem&, const DeviceTraits&) {
    return WarpsConfig{.threads = 256};
}

}  // namespace

const Variant warps{.name = "warps",
                    .summary = "a warp searches the scale of a group; then blocks of 64 x 64 are encoded",
                    .source = "quantize_weights/warps.cu",
                    .tunables = tunables,
                    .kernels = warps_kernels,
                    .plan = typed<warps_plan>,
                    .fallback = typed<fallback>,
                    .access_elements = typed<warps_access_elements>,
                    .predict_us = typed<predict>};

}  // namespace hone::quantize_weights
