#include <cmath>

#include "kernel_templates/rmsnorm_backward/backward.h"

namespace hone {
namespace rmsnorm_backward {
namespace {

using norm::NormProblem;

constexpr std::string_view dtype_choices[] = {"fp32", "fp16", "bf16"};
constexpr Dtype dtypes[] = {Dtype::fp32, Dtype::fp16, Dtype::bf16};
constexpr std::string_view yes_no[] = {"no", "yes"};

constexpr Field fields[] = {
    {"dtype", Field::Kind::choice, "element type of every tensor", 0, 2, -1, dtype_choices},
    {"residual", Field::Kind::choice, "adds dsum, the gradient of the forward pass's sum, to dx", 0, 1, 0,
     yes_no},
    {"hidden", Field::Kind::extent, "elements a row", 1, 262144},
    {"rows", Field::Kind::dynamic, "rows (tokens) of a call", 1, std::int64_t{1} << 30},
};

const Variant* const variants[] = {&held_rows, &two_pass};

Argument tensor(std::string_view name, Role role, Dtype dtype, std::int64_t rows_count, std::int64_t columns,
                bool present = true) {
    return {
        .name = name, .role = role, .dtype = dtype, .shape = {1, 1, rows_count, columns}, .present = present};
}

std::vector<Argument> arguments(const Problem& problem) {
    const NormProblem norm = norm_problem(problem);
    Argument weight_argument = tensor("weight", Role::weight, norm.dtype, 1, norm.hidden);
    weight_argument.fill_scale = 0.25;
    weight_argument.fill_offset = 1.0;
    return {tensor("dy", Role::input, norm.dtype, norm.rows, norm.hidden),
            tensor("x", Role::input, norm.dtype, norm.rows, norm.hidden),
            weight_argument,
            tensor("dsum", Role::input, norm.dtype, norm.rows, norm.hidden, norm.residual),
            tensor("dx", Role::output, norm.dtype, norm.rows, norm.hidden),
            tensor("dweight", Role::output, norm.dtype, 1, norm.hidden),
            tensor("workspace", Role::workspace, Dtype::fp32, 1, 1)};
}

std::vector<ScalarArgument> scalars(const Problem& problem) {
    const NormProblem norm = norm_problem(problem);
    const Scalar stride = Scalar::of(norm.hidden);
    return {{"rows", Scalar::of(norm.rows)}, {"dy_stride", stride}, {"x_stride", stride},
            {"dsum_stride", stride},         {"dx_stride", stride}, {"epsilon", Scalar::of(1e-5f), true}};
}

std::string validate(const Problem& problem) {
    const NormProblem norm = norm_problem(problem);
    if (norm.rows > (std::int64_t{1} << 40) / norm.hidden) {
        return "rows x hidden is " + std::to_string(norm.rows) + " x " + std::to_string(norm.hidden) +
               "; allowed: at most 2^40 elements";
    }
    return {};
}

// One rounding to the output type, plus what float32 arithmetic may add: dx is a difference of terms that are
// sqrt(hidden) times smaller than their sums' parts, dweight a sum over all rows, whose error grows with
// their root.
Tolerance tolerance(const Problem& problem, int argument) {
    const NormProblem norm = norm_problem(problem);
    const double spread = argument == dweight ? std::sqrt(static_cast<double>(norm.rows)) : 1.0;
    switch (norm.dtype) {
        case Dtype::bf16: return {.relative_l2 = 3e-3, .max_abs = 1e-5 * spread, .max_rel = 0x1.1p-8};
        case Dtype::fp16: return {.relative_l2 = 4e-4, .max_abs = 4e-6 * spread, .max_rel = 0x1.1p-11};
        default: return {.relative_l2 = 2e-6, .max_abs = 1e-5 * spread, .max_rel = 1e-5};
    }
}

Work work(const Problem& problem) {
    double bytes = 0;
    for (const Argument& argument : arguments(problem)) {
        if (argument.role != Role::workspace) bytes += static_cast<double>(argument.bytes());
    }
    const NormProblem norm = norm_problem(problem);
    return {.bytes = bytes,
            .flops = 12.0 * static_cast<double>(norm.rows) * static_cast<double>(norm.hidden)};
}

Plan reference_plan(const Problem& problem) {
    const NormProblem norm = norm_problem(problem);
    Plan plan{.launch_count = 2, .workspace_bytes = norm.rows * 8};
    plan.launches[0] = launch("rmsnorm_backward_reference_input", norm.rows, 256, false);
    plan.launches[1] =
        launch("rmsnorm_backward_reference_weight", norm::ceil_div(norm.hidden, 32), 256, false);
    return plan;
}

}  // namespace

NormProblem norm_problem(const Problem& problem) {
    return {
        .dtype = dtypes[problem[0]], .residual = problem[1] != 0, .hidden = problem[2], .rows = problem[3]};
}

Launch launch(const char* kernel, std::int64_t blocks, std::int64_t threads, bool programmatic) {
    Launch result;
    result.kernel = kernel;
    result.grid = {static_cast<std::uint32_t>(blocks), 1, 1};
    result.block = {static_cast<std::uint32_t>(threads), 1, 1};
    result.programmatic = programmatic;
    for (int i = 0; i < pointer_count; ++i) result.args[result.arg_count++] = pointer_arg(i);
    for (int i = 0; i < scalar_count; ++i) result.args[result.arg_count++] = scalar_arg(i);
    return result;
}

Launch sum_launch(const NormProblem& norm, std::int64_t lanes, bool programmatic) {
    const std::int64_t columns = lanes * (norm.hidden % 4 == 0 ? 4 : 1);
    return launch("rmsnorm_backward_sum_partials", norm::ceil_div(norm.hidden, columns), 256, programmatic);
}

double predict_us(const Problem& problem, const Cost& cost, const DeviceTraits& traits) {
    const NormProblem norm = norm_problem(problem);
    const double elements = static_cast<double>(norm.rows) * static_cast<double>(norm.hidden);
    const double bytes_per_us = 0.884 * traits.memory_bytes_per_s * 1e-6;
    const double read_bytes =
        elements * static_cast<double>(norm.element_bytes() * (norm.residual ? 3 : 2)) * cost.read_passes;
    const double written_bytes = elements * static_cast<double>(norm.element_bytes());
    const double bandwidth_us = (read_bytes + written_bytes) / bytes_per_us;

    constexpr double memory_latency_us = 0.33;
    const double draw_us =
        read_bytes * (memory_latency_us + cost.wait_us) / (cost.bytes_in_flight * traits.sm_count);
    const double lanes_per_us = 128 * 0.886e-3 * traits.sm_clock_khz;
    const double issue_us = elements * cost.instructions / (traits.sm_count * lanes_per_us);
    constexpr double sharpness = 2.5;
    const double body_us = std::pow(
        std::pow(bandwidth_us, sharpness) + std::pow(draw_us, sharpness) + std::pow(issue_us, sharpness),
        1.0 / sharpness);

    // Written and read at twice the memory's rate, since they stay in L2.
    const double partials_us = cost.partial_rows * static_cast<double>(norm.hidden) * 8 / (2 * bytes_per_us);
    const double launch_us = cost.launches * ((cost.programmatic ? 0.29 : 0.69) + memory_latency_us);
    return launch_us + body_us + partials_us;
}

}  // namespace rmsnorm_backward

extern const Family rmsnorm_backward_family;
const Family rmsnorm_backward_family{
    .name = "rmsnorm_backward",
    .summary = "dx and dweight of rmsnorm, from dy and x",
    .fields = rmsnorm_backward::fields,
    .variants = rmsnorm_backward::variants,
    .validate = rmsnorm_backward::validate,
    .arguments = rmsnorm_backward::arguments,
    .scalars = rmsnorm_backward::scalars,
    .tolerance = rmsnorm_backward::tolerance,
    .work = rmsnorm_backward::work,
    .reference_source = "rmsnorm_backward/reference.cu",
    .reference_plan = rmsnorm_backward::reference_plan,
};

}  // namespace hone
