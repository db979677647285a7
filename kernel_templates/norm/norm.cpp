#include "kernel_templates/norm/norm.h"

#include <algorithm>
#include <cmath>

namespace hone::norm {
namespace {

constexpr std::string_view dtype_choices[] = {"fp32", "fp16", "bf16"};
constexpr Dtype dtypes[] = {Dtype::fp32, Dtype::fp16, Dtype::bf16};
constexpr std::string_view output_choices[] = {"same", "int8", "fp8"};
constexpr std::string_view yes_no[] = {"no", "yes"};

constexpr std::int64_t max_hidden = 262144;
constexpr std::int64_t max_rows = std::int64_t{1} << 30;

constexpr Field dtype_field{"dtype", Field::Kind::choice, "element type of x, residual, weight, bias and sum", 0, 2, -1,
                            dtype_choices};
constexpr Field output_field{
    "output", Field::Kind::choice, "same: out has dtype; int8, fp8 (E4M3): codes with one fp32 scale a row", 0, 2, 0,
    output_choices};
constexpr Field residual_field{"residual", Field::Kind::choice, "adds residual to x first and writes the sum", 0, 1, 0,
                               yes_no};
constexpr Field bias_field{"bias", Field::Kind::choice, "adds a bias after the weight", 0, 1, 1, yes_no};
constexpr Field hidden_field{"hidden", Field::Kind::extent, "elements a row", 1, max_hidden};
constexpr Field rows_field{"rows", Field::Kind::dynamic, "rows (tokens) of a call", 1, max_rows};

constexpr Field rmsnorm_field_list[] = {dtype_field, output_field, residual_field, hidden_field, rows_field};
constexpr Field layernorm_field_list[] = {dtype_field, output_field, residual_field, bias_field, hidden_field, rows_field};

Argument tensor(std::string_view name, Role role, Dtype dtype, std::int64_t rows_count, std::int64_t columns, bool present) {
    return {.name = name, .role = role, .dtype = dtype, .shape = {1, 1, rows_count, columns}, .present = present};
}

}  // namespace

Dtype NormProblem::out_dtype() const {
    switch (output) {
        case OutputKind::int8: return Dtype::int8;
        case OutputKind::fp8: return Dtype::fp8_e4m3;
        case OutputKind::same: break;
    }
    return dtype;
}

std::span<const Field> rmsnorm_fields() {
    return rmsnorm_field_list;
}

std::span<const Field> layernorm_fields() {
    return layernorm_field_list;
}

NormProblem norm_problem(const Problem& problem) {
    const bool layer_norm = problem.family->fields.size() == std::size(layernorm_field_list);
    const std::size_t after_bias = layer_norm ? 4 : 3;
    return {.dtype = dtypes[problem[0]],
            .output = static_cast<OutputKind>(problem[1]),
            .residual = problem[2] != 0,
            .bias = layer_norm && problem[3] != 0,
            .layer_norm = layer_norm,
            .hidden = problem[after_bias],
            .rows = problem[after_bias + 1]};
}

std::string validate(const Problem& problem) {
    const NormProblem norm = norm_problem(problem);
    if (norm.rows > (std::int64_t{1} << 40) / norm.hidden) {
        return "rows x hidden is " + std::to_string(norm.rows) + " x " + std::to_string(norm.hidden) +
               "; allowed: at most 2^40 elements";
    }
    return {};
}

std::vector<Argument> arguments(const Problem& problem) {
    const NormProblem norm = norm_problem(problem);
    Argument weight_argument = tensor("weight", Role::weight, norm.dtype, 1, norm.hidden, true);
    weight_argument.fill_scale = 0.25;
    weight_argument.fill_offset = 1.0;
    return {tensor("x", Role::input, norm.dtype, norm.rows, norm.hidden, true),
            tensor("residual", Role::input, norm.dtype, norm.rows, norm.hidden, norm.residual),
            weight_argument,
            tensor("bias", Role::weight, norm.dtype, 1, norm.hidden, norm.bias),
            tensor("out", Role::output, norm.out_dtype(), norm.rows, norm.hidden, true),
            tensor("sum", Role::output, norm.dtype, norm.rows, norm.hidden, norm.residual),
            tensor("scale", Role::output, Dtype::fp32, norm.rows, 1, norm.quantized())};
}

std::vector<ScalarArgument> scalars(const Problem& problem) {
    const NormProblem norm = norm_problem(problem);
    const Scalar stride = Scalar::of(norm.hidden);
    return {{"rows", Scalar::of(norm.rows)}, {"x_stride", stride},   {"residual_stride", stride},
            {"out_stride", stride},          {"sum_stride", stride}, {"epsilon", Scalar::of(1e-5f), true}};
}

// One rounding to the output type, plus what float32 arithmetic may add. Quantised codes may differ by one step where the
// float32 result lies next to the border of two codes.
Tolerance tolerance(const Problem& problem, int argument) {
    const NormProblem norm = norm_problem(problem);
    if (argument == sum) return {.relative_l2 = 1e-7, .max_abs = 0, .max_rel = 1e-7};
    if (argument == scale) return {.relative_l2 = 1e-5, .max_abs = 0, .max_rel = 1e-5};
    switch (norm.out_dtype()) {
        case Dtype::int8: return {.relative_l2 = 1e-2, .max_abs = 1.01, .max_rel = 0};
        case Dtype::fp8_e4m3: return {.relative_l2 = 4e-2, .max_abs = 0x1.1p-9, .max_rel = 0.13};
        case Dtype::bf16: return {.relative_l2 = 3e-3, .max_abs = 1e-5, .max_rel = 0x1.1p-8};
        case Dtype::fp16: return {.relative_l2 = 4e-4, .max_abs = 2e-6, .max_rel = 0x1.1p-11};
        case Dtype::fp32: break;
    }
    return {.relative_l2 = 1e-6, .max_abs = 1e-5, .max_rel = 4e-6};
}

Work work(const Problem& problem) {
    double bytes = 0;
    for (const Argument& argument : arguments(problem)) bytes += static_cast<double>(argument.bytes());
    const NormProblem norm = norm_problem(problem);
    return {.bytes = bytes, .flops = 4.0 * static_cast<double>(norm.rows) * static_cast<double>(norm.hidden)};
}

Launch norm_launch(const char* kernel) {
    Launch launch;
    launch.kernel = kernel;
    for (int i = 0; i < pointer_count; ++i) launch.args[launch.arg_count++] = pointer_arg(i);
    for (int i = 0; i < scalar_count; ++i) launch.args[launch.arg_count++] = scalar_arg(i);
    return launch;
}

Plan reference_plan(const Problem& problem) {
    Plan plan{.launch_count = 1};
    plan.launches[0] = norm_launch("norm_reference");
    plan.launches[0].grid = {static_cast<std::uint32_t>(norm_problem(problem).rows), 1, 1};
    plan.launches[0].block = {256, 1, 1};
    return plan;
}

std::int64_t widest_vector(const NormProblem& problem) {
    std::int64_t vector = 16 / problem.element_bytes();
    while (problem.hidden % vector != 0) vector /= 2;
    return vector;
}

bool vector_is_sensible(const NormProblem& problem, std::int64_t vector) {
    const std::int64_t widest = widest_vector(problem);
    return vector == widest || (vector * 2 == widest && vector * problem.element_bytes() >= 4);
}

double reduction_us(int count, std::int64_t lanes) {
    const double shuffles = 0.012 * std::log2(static_cast<double>(std::min<std::int64_t>(lanes, 32)));
    const double across_warps = lanes > 32 ? 0.06 + 0.002 * static_cast<double>(lanes / 32) : 0.0;
    return count * (shuffles + across_warps);
}

double predict_us(const Problem& problem, const Footprint& footprint, const DeviceTraits& traits) {
    const auto by = [](std::int64_t available, std::int64_t wanted) {
        return static_cast<double>(available) / static_cast<double>(std::max<std::int64_t>(wanted, 1));
    };
    const double resident = std::floor(std::min({static_cast<double>(traits.max_blocks_per_sm),
                                                 by(traits.max_threads_per_sm, footprint.threads),
                                                 by(traits.registers_per_sm, footprint.registers * footprint.threads),
                                                 by(traits.shared_bytes_per_sm, footprint.shared_bytes)}));
    if (resident < 1) return 1e9;
    const double blocks = static_cast<double>(footprint.blocks);
    const double sms = traits.sm_count;
    const double active = std::min(resident, std::ceil(blocks / sms));
    const double used_sms = std::min(sms, blocks);

    const double bytes = work(problem).bytes + footprint.extra_bytes;
    constexpr double memory_latency_us = 0.9;
    const double drawn_bytes_per_us = used_sms * active * footprint.bytes_in_flight / memory_latency_us;
    const double bandwidth_bytes_per_us = 0.91 * traits.memory_bytes_per_s * 1e-6;
    const double stream_us = bytes / std::min(bandwidth_bytes_per_us, drawn_bytes_per_us);

    // The last wave is partly empty.
    const double waves = blocks / (sms * resident);
    const double tail_us = waves > 1 ? stream_us * (std::ceil(waves) - waves) / std::ceil(waves) * 0.3 : 0.0;
    const double launch_us = footprint.programmatic ? 0.5 : 1.1;
    const double block_starts_us = 0.004 * blocks / sms;
    return launch_us + memory_latency_us + footprint.latency_us + stream_us + tail_us + block_starts_us;
}

}  // namespace hone::norm
