#include <algorithm>

#include "kernel_templates/linear/wgmma/rules.h"
#include "kernel_templates/quantized_linear/dequantize/geometry.cuh"
#include "kernel_templates/quantized_linear/quantized_linear.h"

namespace hone::quantized_linear {
namespace {

using namespace linear::gemm;

linear::LinearProblem dense(const Problem& problem) { return quantized_problem(problem).dense(); }

/// Of one weight.
std::int64_t number_bytes(const QuantizedProblem& p) { return p.out * p.in * size_bytes(p.dtype); }

/// With fewer, wgmma_w16 reads the codes and multiplies in the time in which the numbers are written.
constexpr std::int64_t least_tokens = 257;
/// The workspace's share of the device's memory: all layers of a model may use the same one.
constexpr std::int64_t memory_parts = 32;

constexpr Constraint own_constraints[] = {
    {"codes of 4 or 8 bits that stand in blocks become 16-bit numbers",
     [](const Problem& p, const Config&, const DeviceTraits&) { return quantized_problem(p).is_packed(); }},
    {"rows must start at multiples of 16 bytes: in and out are multiples of 8",
     [](const Problem& p, const Config&, const DeviceTraits&) {
         return quantized_problem(p).in % 8 == 0 && quantized_problem(p).out % 8 == 0;
     }},
    {"numbers are written for more than 256 tokens: fewer are multiplied faster with the codes",
     [](const Problem& p, const Config&, const DeviceTraits&) {
         return quantized_problem(p).tokens >= least_tokens;
     }},
    {"the numbers may take a 32nd of the device's memory as workspace",
     [](const Problem& problem, const Config&, const DeviceTraits& t) {
         const QuantizedProblem p = quantized_problem(problem);
         return p.products() * number_bytes(p) <= t.memory_bytes / memory_parts;
     }},
};
constexpr auto constraints = joined(own_constraints, rules<dense>);

std::int64_t aligned(std::int64_t bytes) {
    return ceil_div(bytes, workspace_alignment) * workspace_alignment;
}

KernelArg add_address(Plan& plan, std::int64_t offset) {
    plan.values[static_cast<std::size_t>(plan.value_count)] = {.number = offset, .pointer = workspace};
    return plan_value_arg(plan.value_count++);
}

/// A weight's numbers in the workspace, behind what is there; the map describes them.
KernelArg add_numbers(Plan& plan, const QuantizedProblem& p, std::size_t map) {
    const std::int64_t offset = aligned(plan.workspace_bytes);
    plan.workspace_bytes = offset + number_bytes(p);
    plan.tensor_maps[map].offset_bytes = offset;
    return add_address(plan, offset);
}

/// `product`, whose maps 1 and 2 are the weights', behind the launch that writes what they describe.
Plan dequantize_first(const QuantizedProblem& p, const Plan& product) {
    Plan plan = product;
    const KernelArg numbers = add_numbers(plan, p, 1);
    const KernelArg up_numbers = p.gated ? add_numbers(plan, p, 2) : numbers;
    const unpacked::Tasks tasks{.in = static_cast<int>(p.in),
                                .out = static_cast<int>(p.out),
                                .bits = p.bits(),
                                .products = static_cast<int>(p.products())};
    Launch launch;
    launch.kernel = "quantized_linear_dequantize";
    launch.grid = {static_cast<std::uint32_t>(tasks.count()), 1, 1};
    launch.block = {unpacked::threads, 1, 1};
    launch.programmatic = product.launches[0].programmatic;
    for (const int index : {weight, scales, zeros, up, up_scales, up_zeros})
        launch.args[launch.arg_count++] = pointer_arg(index);
    for (const KernelArg arg : {numbers, up_numbers}) launch.args[launch.arg_count++] = arg;
    plan.launch_count = 2;
    plan.launches[0] = launch;
    plan.launches[1] = product.launches[0];
    return plan;
}

Plan plan(const Problem& problem, const Config& config, const DeviceTraits& traits) {
    const QuantizedProblem p = quantized_problem(problem);
    Plan plan = plan_product("quantized_linear_dequantized", p.dense(), config, traits,
                             {.result = p.dtype,
                              .x = x,
                              .weight = workspace,
                              .up = workspace,
                              .out = out,
                              .x_stride = x_stride,
                              .weight_stride = TensorMap::no_gaps,
                              .up_stride = TensorMap::no_gaps,
                              .out_stride = out_stride});
    Launch& product = plan.launches[0];
    for (const int index : {bias, residual, out, workspace})
        product.args[product.arg_count++] = pointer_arg(index);
    for (const int index : {tokens, residual_stride, out_stride})
        product.args[product.arg_count++] = scalar_arg(index);
    return linear::normalize_first(p.dense(), dequantize_first(p, plan), norm_arguments);
}

/// A launch that the product waits for; codes come from memory, numbers go there but for those that level 2
/// keeps beside what else passes through it, which takes about half as long.
double dequantize_us(const QuantizedProblem& p, const DeviceTraits& traits) {
    const double written = static_cast<double>(p.products()) * static_cast<double>(number_bytes(p));
    const double kept = std::min(written, 0.5 * static_cast<double>(traits.l2_bytes));
    return 2.0 + (p.weight_bytes() + written - 0.5 * kept) / (0.85e-6 * traits.memory_bytes_per_s);
}

double predict_us(const Problem& problem, const Config& config, const DeviceTraits& traits) {
    return predict(dense(problem), config, traits) + dequantize_us(quantized_problem(problem), traits);
}

}  // namespace

const Variant dequantize{
    .name = "dequantize",
    .summary = "weights written as 16-bit numbers by a launch in front, then linear's warpgroup tensor cores",
    .source = "quantized_linear/dequantize/kernel.cu",
    .min_arch = {9, 0, true},
    .tunables = tunables,
    .constraints = constraints,
    .plan = plan,
    // What nobody has measured takes no such workspace: wgmma_w16 is close.
    .fallback = [](const Problem&, const DeviceTraits&) { return std::optional<Config>(); },
    .access_elements = [](const Problem&, const Config&) { return std::int64_t{16}; },
    .predict_us = predict_us};

}  // namespace hone::quantized_linear
