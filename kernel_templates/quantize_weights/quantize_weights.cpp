#include "kernel_templates/quantize_weights/quantize_weights.h"

#include "kernel_templates/quantize_weights/scale_rule.cuh"

namespace hone::quantize_weights {

using quantized_linear::ceil_div;
using quantized_linear::scaled_block;

WeightProblem weight_problem(const Problem& problem) {
    constexpr Dtype dtypes[] = {Dtype::fp32, Dtype::fp16, Dtype::bf16};
    const auto format = static_cast<Format>(problem[1]);
    const Dtype half = problem[6] == 0 ? Dtype::fp16 : Dtype::bf16;
    return {.dtype = dtypes[problem[0]],
            .format = format,
            .group = problem[2],
            .zeros = problem[3] != 0,
            .one_scale = problem[4] != 0,
            .search = problem[5] != 0,
            .scale_dtype = format == Format::w4a16 ? half : Dtype::fp32,
            .in = problem[7],
            .out = problem[8]};
}

std::int64_t WeightProblem::scale_count() const {
    if (is_w4()) return quantized_linear::whole_blocks(out) * group_places() * quantized_linear::block_rows;
    if (one_scale) return 1;
    return group == 0 ? out : ceil_div(out, scaled_block) * (in / group);
}

std::int64_t WeightProblem::trials() const {
    constexpr std::int64_t usual_fits = 3;  // of the scale that fits the codes best
    if (!is_w4() || !search) return 1;
    const std::int64_t parts = part_count(static_cast<int>(width()));
    return 1 + (zeros ? 2 * (parts + 14) + 51 : 2 * (parts + 8) + 17) + usual_fits;
}

Launch launch(const char* kernel, std::int64_t blocks, std::int64_t threads) {
    Launch result;
    result.kernel = kernel;
    result.grid = {static_cast<std::uint32_t>(blocks), 1, 1};
    result.block = {static_cast<std::uint32_t>(threads), 1, 1};
    for (int i = 0; i < pointer_count; ++i) result.args[result.arg_count++] = pointer_arg(i);
    for (int i = 0; i < scalar_count; ++i) result.args[result.arg_count++] = scalar_arg(i);
    return result;
}

}  // namespace hone::quantize_weights
