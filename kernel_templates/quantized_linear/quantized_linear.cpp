#include "kernel_templates/quantized_linear/quantized_linear.h"

namespace hone::quantized_linear {

QuantizedProblem quantized_problem(const Problem& problem) {
    constexpr Dtype dtypes[] = {Dtype::fp32, Dtype::fp16, Dtype::bf16};
    return {.dtype = dtypes[problem[0]],
            .format = static_cast<Format>(problem[1]),
            .group = problem[2],
            .zeros = problem[3] != 0,
            .quantized_x = problem[4] != 0,
            .norm = problem[5] != 0,
            .activation = static_cast<Activation>(problem[6]),
            .gated = problem[7] != 0,
            .bias = problem[8] != 0,
            .residual = problem[9] != 0,
            .in = problem[10],
            .out = problem[11],
            .tokens = problem[12]};
}

linear::LinearProblem QuantizedProblem::dense() const {
    return {.dtype = dtype,
            .norm = norm,
            .activation = activation,
            .gated = gated,
            .bias = bias,
            .residual = residual,
            .in = in,
            .out = out,
            .tokens = tokens};
}

double QuantizedProblem::weight_bytes() const {
    const double rows = static_cast<double>(products() * out);
    const double columns = static_cast<double>(in);
    double scale_bytes = 4;  // a channel's
    if (format == Format::w4a16) scale_bytes = static_cast<double>(groups() * (2 + (zeros ? 1 : 0)));
    if (format == Format::fp8 && group != 0) scale_bytes = 4 * columns / (scaled_block * scaled_block);
    return rows * (columns * bits() / 8 + scale_bytes);
}

double QuantizedProblem::x_bytes() const {
    const double rows = static_cast<double>(tokens);
    const double columns = static_cast<double>(in);
    if (!quantized_x) return rows * columns * 2;
    return rows * (columns + 4 * static_cast<double>(groups()));
}

double QuantizedProblem::out_bytes() const {
    return static_cast<double>(tokens * (residual ? 2 : 1) * 2) * static_cast<double>(out);
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

}  // namespace hone::quantized_linear
