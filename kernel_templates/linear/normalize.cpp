#include "kernel_templates/linear/normalize.h"

namespace hone::linear {
namespace {

constexpr std::int64_t block_threads = 256;  // as in normalize.cuh

/// Places of the kernel's members.
enum Member : std::size_t { from, weight_member, to, from_stride };

/// A tensor map of x becomes one of the rows that the launch has written.
void describe_normalized(TensorMap& map, std::uint8_t workspace_pointer, std::int64_t offset) {
    map.pointer = workspace_pointer;
    map.offset_bytes = offset;
    map.stride_scalars[0] = TensorMap::no_gaps;
}

}  // namespace

Plan normalize_first(const LinearProblem& p, const Plan& product, const Kernel& kernel) {
    if (!p.norm) return product;
    const KernelArg given = kernel.args[from];
    const KernelArg room = kernel.args[to];
    const std::int64_t offset = round_up(product.workspace_bytes, workspace_alignment);
    Plan plan = product;
    plan.workspace_bytes = offset + p.tokens * p.in * p.element_bytes();
    const std::uint8_t normalized =
        add_value(plan, {.number = offset, .pointer = static_cast<std::int8_t>(room.index)});
    const std::uint8_t normalized_stride = add_value(plan, {.number = p.in});

    plan.launch_count = product.launch_count + 1;
    plan.launches[0] = launch(kernel, grid_of(p.tokens), block_threads);
    plan.launches[0].programmatic = product.launches[0].programmatic;
    substitute(plan.launches[0], room, normalized);
    for (std::size_t i = 0; i < static_cast<std::size_t>(product.launch_count); ++i) {
        plan.launches[i + 1] = product.launches[i];
        substitute(plan.launches[i + 1], given, normalized);
        substitute(plan.launches[i + 1], kernel.args[from_stride], normalized_stride);
    }
    for (std::size_t i = 0; i < static_cast<std::size_t>(plan.tensor_map_count); ++i) {
        TensorMap& map = plan.tensor_maps[i];
        if (map.pointer == given.index) describe_normalized(map, room.index, offset);
    }
    return plan;
}

}  // namespace hone::linear
