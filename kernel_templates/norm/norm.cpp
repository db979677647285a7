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

constexpr Field dtype_field{
    "dtype", Field::Kind::choice, "element type of x, residual, weight, bias and sum", 0, 2,
    -1,      dtype_choices};
constexpr Field output_field{"output",
                             Field::Kind::choice,
                             "same: out has dtype; int8, fp8 (E4M3): codes with one fp32 scale a row",
                             0,
                             2,
                             0,
                             output_choices};
constexpr Field residual_field{
    "residual", Field::Kind::choice, "adds residual to x first and writes the sum", 0, 1, 0, yes_no};
constexpr Field bias_field{"bias", Field::Kind::choice, "adds a bias after the weight", 0, 1, 1, yes_no};
constexpr Field hidden_field{"hidden", Field::Kind::extent, "elements a row", 1, max_hidden};
constexpr Field rows_field{"rows", Field::Kind::dynamic, "rows (tokens) of a call", 1, max_rows};

constexpr Field rmsnorm_field_list[] = {dtype_field, output_field, residual_field, hidden_field, rows_field};
constexpr Field layernorm_field_list[] = {dtype_field, output_field, residual_field,
                                          bias_field,  hidden_field, rows_field};

Argument tensor(std::string_view name, Role role, Dtype dtype, std::int64_t rows_count, std::int64_t columns,
                bool present) {
    return {
        .name = name, .role = role, .dtype = dtype, .shape = {1, 1, rows_count, columns}, .present = present};
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

std::span<const Field> rmsnorm_fields() { return rmsnorm_field_list; }

std::span<const Field> layernorm_fields() { return layernorm_field_list; }

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

namespace {

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

}  // namespace

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

namespace {

std::string validate(const Problem& problem) {
    const NormProblem norm = norm_problem(problem);
    if (norm.rows > (std::int64_t{1} << 40) / norm.hidden) {
        return "rows x hidden is " + std::to_string(norm.rows) + " x " + std::to_string(norm.hidden) +
               "; allowed: at most 2^40 elements";
    }
    return {};
}

std::vector<ScalarArgument> scalars(const Problem& problem) {
    const NormProblem norm = norm_problem(problem);
    const Scalar stride = Scalar::of(norm.hidden);
    return {{"rows", Scalar::of(norm.rows)}, {"x_stride", stride},   {"residual_stride", stride},
            {"out_stride", stride},          {"sum_stride", stride}, {"epsilon", Scalar::of(1e-5f), true}};
}

// One rounding to the output type, plus what float32 arithmetic may add. Quantized codes may differ by one
// step where the float32 result lies next to the border of two codes.
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

Plan reference_plan(const Problem& problem) {
    Plan plan{.launch_count = 1};
    plan.launches[0] = norm_launch("norm_reference");
    plan.launches[0].grid = {static_cast<std::uint32_t>(norm_problem(problem).rows), 1, 1};
    plan.launches[0].block = {256, 1, 1};
    return plan;
}

}  // namespace

Family family(Family own) {
    own.validate = validate;
    own.arguments = arguments;
    own.scalars = scalars;
    own.tolerance = tolerance;
    own.work = work;
    own.reference_plan = reference_plan;
    return own;
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

double work_factor(const NormProblem& problem) {
    return (1.0 + (problem.residual ? 0.4 : 0.0) + (problem.quantized() ? 0.5 : 0.0)) *
           (problem.layer_norm ? 1.3 : 1.0);
}

namespace {

double share_of_l2(const Problem& problem, const DeviceTraits& traits) {
    return work(problem).bytes / static_cast<double>(traits.l2_bytes);
}

}  // namespace

bool bound_by_memory(const Problem& problem, const DeviceTraits& traits) {
    return share_of_l2(problem, traits) > 2.0;
}

double memory_factor(const Problem& problem, const MemoryShape& shape, const DeviceTraits& traits) {
    if (!bound_by_memory(problem, traits)) return 1.0;
    const double long_shares = std::max(0.0, std::log2(shape.bytes_per_thread / 64));
    const double neighbours = std::min(4.0, std::log2(shape.rows_per_block));
    return (1 + 0.015 * long_shares) * (1 + 0.004 * neighbours) * (1 + 0.004 * (shape.rows_in_flight - 1));
}

double hint_factor(const Problem& problem, bool streaming_loads, bool streaming_stores,
                   const DeviceTraits& traits) {
    const double share = share_of_l2(problem, traits);
    const double each = share > 0.03 && share < 2.0 ? 0.98 : share < 4.0 ? 1.0 : 1.012;
    return (streaming_loads ? each : 1.0) * (streaming_stores ? each : 1.0);
}

namespace {

/// Blocks of this footprint that run side by side on one multiprocessor.
double resident_blocks(const Footprint& footprint, const DeviceTraits& traits) {
    constexpr std::int64_t other_registers = 20;
    const std::int64_t register_limit =
        std::min<std::int64_t>(255, traits.registers_per_sm / footprint.threads);
    const std::int64_t registers = std::min(footprint.held_registers + other_registers, register_limit);
    const std::int64_t reserved_shared = footprint.shared_bytes + 2048;
    return static_cast<double>(std::min({std::int64_t{traits.max_blocks_per_sm}, footprint.blocks_per_sm,
                                         traits.max_threads_per_sm / footprint.threads,
                                         traits.registers_per_sm / (registers * footprint.threads),
                                         traits.shared_bytes_per_sm / reserved_shared}));
}

}  // namespace

double predict_us(const Problem& problem, const Footprint& footprint, const DeviceTraits& traits) {
    const double resident = resident_blocks(footprint, traits);
    if (resident < 1) return 1e7;
    const NormProblem norm = norm_problem(problem);
    const double blocks = static_cast<double>(footprint.blocks);
    const double sms = std::min<double>(traits.sm_count, blocks);
    const double active = std::min(resident, std::ceil(blocks / traits.sm_count));

    const double across_warps_us =
        footprint.reducing_warps > 0 ? 0.049 + 0.0003 * footprint.reducing_warps : 0.0;
    const double latency_us = 0.0042 * footprint.elements +
                              0.059 / 1024 * static_cast<double>(footprint.threads) +
                              across_warps_us * norm.reductions() + footprint.latency_us;

    constexpr double memory_latency_us = 0.33;
    const double bandwidth_us = work(problem).bytes / (0.884 * traits.memory_bytes_per_s * 1e-6);
    const double read_bytes =
        static_cast<double>(norm.rows * norm.hidden * norm.element_bytes() * (norm.residual ? 2 : 1));
    const double cycle_us = memory_latency_us + (footprint.loads_ahead ? 0.0 : 0.05 + latency_us);
    const double draw_us = read_bytes * cycle_us / (sms * active * footprint.bytes_in_flight);

    const double instructions =
        15 + 10.2 * footprint.elements * footprint.work_factor + footprint.reducing_warps;
    const double threads = blocks * static_cast<double>(footprint.threads) * footprint.rounds;
    const double lanes_per_us = 128 * 0.886e-3 * traits.sm_clock_khz;
    const double issue_us = threads / sms * instructions / lanes_per_us;

    const double sharpness = bound_by_memory(problem, traits) ? 2.5 : 1.78;
    const double body_us = std::pow(
        std::pow(bandwidth_us, sharpness) + std::pow(draw_us, sharpness) + std::pow(issue_us, sharpness),
        1.0 / sharpness);
    const double launch_us = footprint.programmatic ? 0.29 : 0.69;
    return (launch_us + memory_latency_us + latency_us + body_us) * footprint.slowdown;
}

}  // namespace hone::norm
