#include "kernel_templates/linear/linear.h"

namespace hone::linear {

LinearProblem linear_problem(const Problem& problem) {
    constexpr Dtype dtypes[] = {Dtype::fp32, Dtype::fp16, Dtype::bf16};
    return {.dtype = dtypes[problem[0]],
            .norm = problem[1] != 0,
            .activation = static_cast<Activation>(problem[2]),
            .gated = problem[3] != 0,
            .bias = problem[4] != 0,
            .residual = problem[5] != 0,
            .in = problem[6],
            .out = problem[7],
            .tokens = problem[8]};
}

Launch launch(const char* kernel, Dim3 grid, std::int64_t threads) {
    Launch result;
    result.kernel = kernel;
    result.grid = grid;
    result.block = {static_cast<std::uint32_t>(threads), 1, 1};
    for (int i = 0; i < pointer_count; ++i) result.args[result.arg_count++] = pointer_arg(i);
    for (int i = 0; i < scalar_count; ++i) result.args[result.arg_count++] = scalar_arg(i);
    return result;
}

std::optional<Config> best_of(const Problem& problem, const Variant& variant, std::span<const Config> configs,
                              const DeviceTraits& traits) {
    std::optional<Config> best;
    double best_us = 0;
    for (const Config& config : configs) {
        if (!allowed(problem, {&variant, config}, traits)) continue;
        const double us = variant.predict_us(problem, config, traits);
        if (best && us >= best_us) continue;
        best = config;
        best_us = us;
    }
    return best;
}

}  // namespace hone::linear
