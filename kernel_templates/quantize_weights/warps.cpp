#include <algorithm>

#include "kernel_templates/quantize_weights/quantize_weights.h"

namespace hone::quantize_weights {
namespace {

using quantized_linear::block_rows;
using quantized_linear::ceil_div;
using quantized_linear::whole_blocks;

enum Index : std::size_t { threads };

constexpr Tunable tunables[] = {
    {"threads", "threads a block of the launch that finds the scales", {64, 128, 256}},
};

// Of warps.cu.
constexpr std::int64_t clear_threads = 256;
constexpr std::int64_t block_threads = 128;
constexpr std::int64_t row_threads = 256;
constexpr std::int64_t row_codes = 4;
constexpr std::int64_t span = 1024;

/// Of the second launch.
std::int64_t warp_count(const WeightProblem& p) {
    if (p.is_w4()) return whole_blocks(p.out) * block_rows * p.group_places();
    return p.out * ceil_div(p.in, p.group == 0 ? span : p.group);
}

Launch encode_launch(const WeightProblem& p) {
    constexpr const char* kernel = "quantize_weights_encode";
    if (p.is_packed()) return launch(kernel, whole_blocks(p.out) * whole_blocks(p.in), block_threads);
    return launch(kernel, p.out * ceil_div(p.in, row_threads * row_codes), row_threads);
}

Plan plan(const Problem& problem, const Config& config, const DeviceTraits&) {
    const WeightProblem p = weight_problem(problem);
    const std::int64_t maxima = p.is_w4() ? 0 : p.scale_count();
    Plan plan{.launch_count = 3, .value_count = 1, .workspace_bytes = maxima_offset + 4 * maxima};
    plan.values[0].number = maxima;
    plan.launches[0] = launch("quantize_weights_clear",
                              ceil_div(std::max<std::int64_t>(maxima, 1), clear_threads), clear_threads);
    plan.launches[0].args[plan.launches[0].arg_count++] = plan_value_arg(0);
    plan.launches[1] =
        launch("quantize_weights_scales", ceil_div(warp_count(p), config[threads] / 32), config[threads]);
    plan.launches[2] = encode_launch(p);
    return plan;
}

/// Issue slots of the search, at nine instructions a value and trial; trials go 32 at a time, so that some
/// lanes idle, which the factor 1.3 stands for. Else memory: the weights are read twice.
double predict(const Problem& problem, const Config& config, const DeviceTraits& traits) {
    const WeightProblem p = weight_problem(problem);
    const double values = static_cast<double>(p.in) * static_cast<double>(p.out);
    const double lanes_per_us = 128e-3 * traits.sm_clock_khz * traits.sm_count;
    const double steps = p.trials() == 1 ? 0 : 9 * 1.3 * static_cast<double>(p.trials());
    const double encode_steps = 30;
    const double tail_us = 0.1 * static_cast<double>(config[threads]) / 64;
    const double weights = values * static_cast<double>(p.element_bytes());
    const double bytes = problem.family->work(problem).bytes + weights;
    const double bandwidth = 0.86e-6 * static_cast<double>(traits.memory_bytes_per_s);
    return 3 + tail_us + values * (steps + encode_steps) / lanes_per_us + bytes / bandwidth;
}

std::optional<Config> fallback(const Problem&, const DeviceTraits&) {
    Config config;
    config[threads] = 256;
    return config;
}

}  // namespace

const Variant warps{.name = "warps",
                    .summary = "a warp searches the scale of a group; then blocks of 64 x 64 are encoded",
                    .source = "quantize_weights/warps.cu",
                    .tunables = tunables,
                    .plan = plan,
                    .fallback = fallback,
                    .access_elements =
                        [](const Problem& problem, const Config&) {
                            return std::int64_t{weight_problem(problem).is_packed() ? 16 : 1};
                        },
                    .predict_us = predict};

}  // namespace hone::quantize_weights
