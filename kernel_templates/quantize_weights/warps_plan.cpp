#include "kernel_templates/quantize_weights/warps_plan.h"

#include <algorithm>

namespace hone::quantize_weights {
namespace {

using quantized_linear::block_rows;
using quantized_linear::whole_blocks;

// As in warps.cu.
constexpr std::int64_t clear_threads = 256;
constexpr std::int64_t block_threads = 128;
constexpr std::int64_t row_threads = 256;
constexpr std::int64_t row_codes = 4;
constexpr std::int64_t span = 1024;

/// Warps of the second launch.
std::int64_t warp_count(const WeightProblem& p) {
    if (p.is_w4()) return whole_blocks(p.out) * block_rows * p.group_places();
    return p.out * ceil_div(p.in, p.group == 0 ? span : p.group);
}

Launch encode_launch(const WeightProblem& p) {
    const Kernel& kernel = warps_kernels[2];
    if (p.is_packed())
        return launch(kernel, grid_of(whole_blocks(p.out) * whole_blocks(p.in)), block_threads);
    return launch(kernel, grid_of(p.out * ceil_div(p.in, row_threads * row_codes)), row_threads);
}

}  // namespace

Plan warps_plan(const WeightProblem& p, const WarpsConfig& c, const DeviceTraits&) {
    const std::int64_t maxima = p.is_w4() ? 0 : p.scale_count();
    Plan plan{.launch_count = 3, .workspace_bytes = maxima_offset + 4 * maxima};
    add_value(plan, {.number = maxima});
    plan.launches[0] = launch(
        warps_kernels[0], grid_of(ceil_div(std::max<std::int64_t>(maxima, 1), clear_threads)), clear_threads);
    plan.launches[1] = launch(warps_kernels[1], grid_of(ceil_div(warp_count(p), c.threads / 32)), c.threads);
    plan.launches[2] = encode_launch(p);
    return plan;
}

}  // namespace hone::quantize_weights
