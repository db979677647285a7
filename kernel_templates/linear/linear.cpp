#include "kernel_templates/linear/linear.h"

namespace hone::linear {

LinearProblem linear_problem(const Problem& problem) {
    constexpr Dtype dtypes[] = {Dtype::fp32, Dtype::fp16, Dtype::bf16};
    return {.dtype = dtypes[problem[0]],
            .activation = static_cast<Activation>(problem[1]),
            .gated = problem[2] != 0,
            .bias = problem[3] != 0,
            .residual = problem[4] != 0,
            .in = problem[5],
            .out = problem[6],
            .tokens = problem[7]};
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

}  // namespace hone::linear
