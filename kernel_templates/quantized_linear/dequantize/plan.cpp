#include "kernel_templates/quantized_linear/dequantize/plan.h"

namespace hone::quantized_linear {
namespace {

using linear::gemm::WgmmaConfig;

/// Room for a weight's numbers in the workspace, behind what is there; the map describes them. Returns the
/// index of their address in Plan::values.
std::uint8_t add_numbers(Plan& plan, const QuantizedProblem& p, std::size_t map) {
    const std::int64_t offset = round_up(plan.workspace_bytes, workspace_alignment);
    plan.workspace_bytes = offset + number_bytes(p);
    plan.tensor_maps[map].offset_bytes = offset;
    return add_value(plan, {.number = offset, .pointer = workspace});
}

/// The launch that writes what the maps 1 and 2 of `plan` describe.
Launch dequantize_launch(Plan& plan, const QuantizedProblem& p) {
    const unpacked::Tasks tasks{.in = static_cast<int>(p.in),
                                .out = static_cast<int>(p.out),
                                .bits = p.bits(),
                                .products = static_cast<int>(p.products())};
    Launch first = launch(dequantize_kernels[1], grid_of(tasks.count()), unpacked::threads);
    first.programmatic = plan.launches[0].programmatic;
    const std::uint8_t numbers = add_numbers(plan, p, 1);
    substitute(first, numbers_member, numbers);
    substitute(first, up_numbers_member, p.gated ? add_numbers(plan, p, 2) : numbers);
    return first;
}

}  // namespace

Plan dequantize_plan(const QuantizedProblem& p, const WgmmaConfig& c, const DeviceTraits& traits) {
    Plan plan = linear::gemm::plan_product(dequantize_kernels[0], p.dense(), c, traits,
                                           {.result = p.dtype,
                                            .x = x,
                                            .weight = workspace,
                                            .up = workspace,
                                            .out = out,
                                            .x_stride = x_stride,
                                            .weight_stride = TensorMap::no_gaps,
                                            .up_stride = TensorMap::no_gaps,
                                            .out_stride = out_stride});
    const Launch first = dequantize_launch(plan, p);
    plan.launches[1] = plan.launches[0];
    plan.launches[0] = first;
    plan.launch_count = 2;
    return linear::normalize_first(p.dense(), plan, dequantize_kernels[2]);
}

}  // namespace hone::quantized_linear
