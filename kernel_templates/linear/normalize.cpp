#include "kernel_templates/linear/normalize.h"

#include <algorithm>

namespace hone::linear {
namespace {

constexpr std::int64_t block_threads = 256;  // as in normalize.cuh

Launch norm_launch(const LinearProblem& p, const NormArguments& of, KernelArg normalized, bool programmatic) {
    Launch launch;
    launch.kernel = "linear_normalize";
    launch.grid = {static_cast<std::uint32_t>(p.tokens), 1, 1};
    launch.block = {static_cast<std::uint32_t>(block_threads), 1, 1};
    launch.programmatic = programmatic;
    for (const KernelArg arg : {pointer_arg(of.x), pointer_arg(of.norm_weight), normalized,
                                scalar_arg(of.x_stride), scalar_arg(of.epsilon)})
        launch.args[launch.arg_count++] = arg;
    return launch;
}

KernelArg add_value(Plan& plan, const PlanValue& value) {
    plan.values[static_cast<std::size_t>(plan.value_count)] = value;
    return plan_value_arg(plan.value_count++);
}

void replace_args(Launch& launch, KernelArg old, KernelArg by) {
    std::replace(launch.args.begin(), launch.args.begin() + launch.arg_count, old, by);
}

}  // namespace

Plan normalize_first(const LinearProblem& p, const Plan& product, const NormArguments& of) {
    if (!p.norm) return product;
    const std::int64_t offset = ceil_div(product.workspace_bytes, workspace_alignment) * workspace_alignment;
    Plan plan = product;
    plan.workspace_bytes = offset + p.tokens * p.in * p.element_bytes();
    const KernelArg normalized =
        add_value(plan, {.number = offset, .pointer = static_cast<std::int8_t>(of.workspace)});
    const KernelArg normalized_stride = add_value(plan, {.number = p.in});

    plan.launch_count = product.launch_count + 1;
    plan.launches[0] = norm_launch(p, of, normalized, product.launches[0].programmatic);
    for (std::size_t i = 0; i < static_cast<std::size_t>(product.launch_count); ++i) {
        plan.launches[i + 1] = product.launches[i];
        replace_args(plan.launches[i + 1], pointer_arg(of.x), normalized);
        replace_args(plan.launches[i + 1], scalar_arg(of.x_stride), normalized_stride);
    }
    for (int i = 0; i < plan.tensor_map_count; ++i) {
        TensorMap& map = plan.tensor_maps[static_cast<std::size_t>(i)];
        if (map.pointer != of.x) continue;
        map.pointer = static_cast<std::uint8_t>(of.workspace);
        map.offset_bytes = offset;
        map.stride_scalars[0] = TensorMap::no_gaps;
    }
    return plan;
}

double normalize_us(const LinearProblem& p, const DeviceTraits& traits) {
    if (!p.norm) return 0;
    // A launch that waits for the one before it, and a pass over x.
    return 2.0 + 2 * p.x_bytes() / (0.85e-6 * traits.memory_bytes_per_s);
}

}  // namespace hone::linear
