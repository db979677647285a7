#include "kernel_templates/rope_kv_append/rope_kv_append.h"

#include <algorithm>
#include <cmath>

namespace hone::rope_kv_append {

RopeProblem rope_problem(const Problem& problem) {
    constexpr Dtype dtypes[] = {Dtype::fp32, Dtype::fp16, Dtype::bf16};
    return {.dtype = dtypes[problem[0]],
            .quantized = problem[1] != 0,
            .interleaved = problem[2] != 0,
            .norm = problem[3] != 0,
            .slots = problem[4] != 0,
            .page_size = problem[5],
            .heads = problem[6],
            .kv_heads = problem[7],
            .head_dim = problem[8],
            .rotary_dim = problem[9],
            .tokens = problem[10],
            .q_tokens = problem[11]};
}

Plan single_launch(const char* kernel, std::int64_t blocks, std::int64_t threads, bool programmatic) {
    Plan plan{.launch_count = 1};
    Launch& launch = plan.launches[0];
    launch.kernel = kernel;
    launch.grid = {static_cast<std::uint32_t>(blocks), 1, 1};
    launch.block = {static_cast<std::uint32_t>(threads), 1, 1};
    launch.programmatic = programmatic;
    for (int i = 0; i < pointer_count; ++i) launch.args[launch.arg_count++] = pointer_arg(i);
    for (int i = 0; i < scalar_count; ++i) launch.args[launch.arg_count++] = scalar_arg(i);
    return plan;
}

double predict_us(const Problem& problem, const Footprint& footprint, const DeviceTraits& traits) {
    const double lanes_per_us = 128 * 0.886e-3 * traits.sm_clock_khz;
    const double sms = std::min<double>(traits.sm_count, std::ceil(footprint.threads / 128));
    const double issue_us = footprint.threads * footprint.instructions / (sms * lanes_per_us);
    const double bandwidth = 0.86e-6 * traits.memory_bytes_per_s / footprint.slowdown;
    const double memory_us = problem.family->work(problem).bytes / bandwidth;
    constexpr double sharpness = 2.5;
    const double body_us =
        std::pow(std::pow(memory_us, sharpness) + std::pow(issue_us, sharpness), 1 / sharpness);
    const double launch_us = footprint.programmatic ? 0.29 : 0.69;
    return launch_us + footprint.latency_us + body_us;
}

}  // namespace hone::rope_kv_append
