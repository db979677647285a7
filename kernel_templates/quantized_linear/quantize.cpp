#include "kernel_templates/quantized_linear/quantize.h"

namespace hone::quantized_linear {
namespace {

constexpr std::int64_t block_threads = 256;  // as in quantize.cuh

/// Places among quantize_args.
constexpr std::uint8_t codes_member = 2;
constexpr std::uint8_t scales_member = 3;

/// Indices among Plan::values.
struct Codes {
    std::uint8_t codes;
    std::uint8_t scales;
    std::uint8_t stride;
    std::uint8_t scale_stride;
};

Launch quantize_launch(const QuantizedProblem& p, const Kernel& kernel, const Codes& of, bool programmatic) {
    Launch first = launch(kernel, grid_of(p.tokens), block_threads);
    first.programmatic = programmatic;
    substitute(first, codes_member, of.codes);
    substitute(first, scales_member, of.scales);
    return first;
}

Launch with_codes(Launch launch, const Codes& of) {
    substitute(launch, pointer_arg(x, ""), of.codes);
    substitute(launch, pointer_arg(x_scales, ""), of.scales);
    substitute(launch, scalar_arg(x_stride, ""), of.stride);
    substitute(launch, scalar_arg(x_scale_stride, ""), of.scale_stride);
    return launch;
}

}  // namespace

Plan quantize_first(const QuantizedProblem& p, const Plan& product, const Kernel& kernel) {
    if (!p.quantizes_x()) return product;
    const std::int64_t codes_at = round_up(product.workspace_bytes, workspace_alignment);
    const std::int64_t scales_at = round_up(codes_at + p.tokens * p.in, workspace_alignment);
    Plan plan = product;
    plan.workspace_bytes = scales_at + p.tokens * p.groups() * 4;
    const Codes of{.codes = add_value(plan, {.number = codes_at, .pointer = workspace}),
                   .scales = add_value(plan, {.number = scales_at, .pointer = workspace}),
                   .stride = add_value(plan, {.number = p.in}),
                   .scale_stride = add_value(plan, {.number = p.groups()})};

    plan.launch_count = product.launch_count + 1;
    plan.launches[0] = quantize_launch(p, kernel, of, product.launches[0].programmatic);
    for (std::size_t i = 0; i < static_cast<std::size_t>(product.launch_count); ++i)
        plan.launches[i + 1] = with_codes(product.launches[i], of);
    for (std::size_t i = 0; i < static_cast<std::size_t>(plan.tensor_map_count); ++i) {
        TensorMap& map = plan.tensor_maps[i];
        if (map.pointer != x) continue;
        map.pointer = workspace;
        map.offset_bytes = codes_at;
        map.stride_scalars[0] = TensorMap::no_gaps;
    }
    return plan;
}

Plan prepare_first(const QuantizedProblem& p, const Plan& product, const Kernel (&kernels)[3]) {
    if (!p.is_packed()) return quantize_first(p, product, kernels[2]);
    return linear::normalize_first(p.dense(), product, kernels[1]);
}

}  // namespace hone::quantized_linear
