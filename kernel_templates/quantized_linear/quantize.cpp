#include "kernel_templates/quantized_linear/quantize.h"

#include <algorithm>
#include <utility>

namespace hone::quantized_linear {
namespace {

constexpr std::uint32_t block_threads = 256;  // as in quantize.cuh

std::int64_t aligned(std::int64_t bytes) {
    return ceil_div(bytes, workspace_alignment) * workspace_alignment;
}

KernelArg add_value(Plan& plan, const PlanValue& value) {
    plan.values[static_cast<std::size_t>(plan.value_count)] = value;
    return plan_value_arg(plan.value_count++);
}

Launch quantize_launch(const QuantizedProblem& p, KernelArg codes, KernelArg code_scales, bool programmatic) {
    Launch launch;
    launch.kernel = "quantized_linear_quantize";
    launch.grid = {static_cast<std::uint32_t>(p.tokens), 1, 1};
    launch.block = {block_threads, 1, 1};
    launch.programmatic = programmatic;
    for (const KernelArg arg : {pointer_arg(x), pointer_arg(norm_weight), codes, code_scales,
                                scalar_arg(x_stride), scalar_arg(epsilon)})
        launch.args[launch.arg_count++] = arg;
    return launch;
}

}  // namespace

Plan quantize_first(const QuantizedProblem& p, const Plan& product) {
    if (!p.quantizes_x()) return product;
    const std::int64_t codes_at = aligned(product.workspace_bytes);
    const std::int64_t scales_at = aligned(codes_at + p.tokens * p.in);
    Plan plan = product;
    plan.workspace_bytes = scales_at + p.tokens * p.groups() * 4;
    const KernelArg codes = add_value(plan, {.number = codes_at, .pointer = workspace});
    const KernelArg code_scales = add_value(plan, {.number = scales_at, .pointer = workspace});
    const std::pair<KernelArg, KernelArg> replaced[] = {
        {pointer_arg(x), codes},
        {pointer_arg(x_scales), code_scales},
        {scalar_arg(x_stride), add_value(plan, {.number = p.in})},
        {scalar_arg(x_scale_stride), add_value(plan, {.number = p.groups()})}};

    plan.launch_count = product.launch_count + 1;
    plan.launches[0] = quantize_launch(p, codes, code_scales, product.launches[0].programmatic);
    for (std::size_t i = 0; i < static_cast<std::size_t>(product.launch_count); ++i) {
        Launch& launch = plan.launches[i + 1] = product.launches[i];
        for (const auto& [old, by] : replaced)
            std::replace(launch.args.begin(), launch.args.begin() + launch.arg_count, old, by);
    }
    for (int i = 0; i < plan.tensor_map_count; ++i) {
        TensorMap& map = plan.tensor_maps[static_cast<std::size_t>(i)];
        if (map.pointer != x) continue;
        map.pointer = workspace;
        map.offset_bytes = codes_at;
        map.stride_scalars[0] = TensorMap::no_gaps;
    }
    return plan;
}

double quantize_us(const QuantizedProblem& p, const DeviceTraits& traits) {
    if (!p.quantizes_x()) return 0;
    // A launch that waits for the one before it, and a pass over x that leaves half as much.
    return 2.0 + 1.5 * p.x_bytes() / (0.85e-6 * traits.memory_bytes_per_s);
}

Plan prepare_first(const QuantizedProblem& p, const Plan& product) {
    if (!p.is_packed()) return quantize_first(p, product);
    return linear::normalize_first(p.dense(), product, norm_arguments);
}

double prepare_us(const QuantizedProblem& p, const DeviceTraits& traits) {
    return p.is_packed() ? linear::normalize_us(p.dense(), traits) : quantize_us(p, traits);
}

}  // namespace hone::quantized_linear
