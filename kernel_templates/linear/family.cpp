#include <algorithm>
#include <cmath>

#include "kernel_templates/linear/linear.h"

namespace hone {
namespace linear {
namespace {

constexpr std::string_view dtype_choices[] = {"fp32", "fp16", "bf16"};
constexpr std::string_view activation_choices[] = {"none", "gelu_tanh", "gelu_erf", "silu", "relu"};
constexpr std::string_view yes_no[] = {"no", "yes"};

constexpr std::int64_t max_tokens = std::int64_t{1} << 24;
constexpr std::int64_t max_elements = std::int64_t{1} << 40;

constexpr Field fields[] = {
    {"dtype", Field::Kind::choice, "element type of every tensor", 0, 2, -1, dtype_choices},
    {"norm", Field::Kind::choice, "takes x / sqrt(mean(x^2) + epsilon) * norm_weight for x", 0, 1, 0, yes_no},
    {"activation", Field::Kind::choice, "of x * weight^T + bias", 0, 4, 0, activation_choices},
    {"gated", Field::Kind::choice, "multiplies the activation with x * up^T", 0, 1, 0, yes_no},
    {"bias", Field::Kind::choice, "adds bias[out] before the activation", 0, 1, 0, yes_no},
    {"residual", Field::Kind::choice, "adds residual[tokens, out] after the activation", 0, 1, 0, yes_no},
    {"in", Field::Kind::extent, "columns of x and of the weight", 1, 262144},
    {"out", Field::Kind::extent, "rows of the weight, columns of the result", 1, 1048576},
    {"tokens", Field::Kind::dynamic, "rows of x and of the result", 1, max_tokens},
};

const Variant* const variants[] = {&wgmma, &wgmma_tf32, &mma, &mma_tiles, &gemv, &plain};

Argument matrix(std::string_view name, Role role, Dtype dtype, std::int64_t rows, std::int64_t columns,
                bool present = true) {
    return {.name = name, .role = role, .dtype = dtype, .shape = {1, 1, rows, columns}, .present = present};
}

std::vector<Argument> arguments(const Problem& problem) {
    const LinearProblem p = linear_problem(problem);
    // So that results have the size of x.
    const double weight_scale = 1.0 / std::sqrt(static_cast<double>(p.in));
    Argument weight_argument = matrix("weight", Role::weight, p.dtype, p.out, p.in);
    Argument up_argument = matrix("up", Role::weight, p.dtype, p.out, p.in, p.gated);
    weight_argument.fill_scale = weight_scale;
    up_argument.fill_scale = weight_scale;
    Argument norm_argument = matrix("norm_weight", Role::weight, p.dtype, 1, p.in, p.norm);
    norm_argument.fill_scale = 0.25;
    norm_argument.fill_offset = 1.0;
    return {matrix("x", Role::input, p.dtype, p.tokens, p.in),
            norm_argument,
            weight_argument,
            up_argument,
            matrix("bias", Role::weight, p.dtype, 1, p.out, p.bias),
            matrix("residual", Role::input, p.dtype, p.tokens, p.out, p.residual),
            matrix("out", Role::output, p.dtype, p.tokens, p.out),
            matrix("workspace", Role::workspace, Dtype::fp32, 1, 1)};
}

std::vector<ScalarArgument> scalars(const Problem& problem) {
    const LinearProblem p = linear_problem(problem);
    const Scalar in = Scalar::of(p.in);
    const Scalar out = Scalar::of(p.out);
    return {{"tokens", Scalar::of(p.tokens)},
            {"x_stride", in},
            {"weight_stride", in},
            {"up_stride", in},
            {"residual_stride", out},
            {"out_stride", out},
            {"epsilon", Scalar::of(1e-5f), true}};
}

std::string too_large(std::string_view what, std::int64_t rows, std::int64_t columns) {
    if (rows <= max_elements / columns) return {};
    return std::string(what) + " is " + std::to_string(rows) + " x " + std::to_string(columns) +
           "; allowed: at most 2^40 elements";
}

std::string validate(const Problem& problem) {
    const LinearProblem p = linear_problem(problem);
    if (p.gated && p.activation == Activation::none)
        return "gated=yes needs an activation other than none: the gate would be a plain product";
    if (p.gated && p.bias) return "gated=yes has no bias; allowed with gated=no";
    if (p.gated && p.residual) return "gated=yes has no residual; allowed with gated=no";
    if (std::string error = too_large("tokens x in", p.tokens, p.in); !error.empty()) return error;
    return too_large("tokens x out", p.tokens, p.out);
}

// One rounding to the output type, plus what float32 sums of `in` terms may add: they lose about half a unit
// in the last place a step, and tensor cores, which cut off instead of rounding, always to the same side. A
// gated result multiplies two such sums.
//
// With a norm, what is multiplied may have been rounded to the operands' type, which the reference does not:
// the terms' errors of 1.6e-3 (bf16) and 2e-4 (fp16) of their size add up like a random walk, to so much of a
// result of unit size. Allowed are seven times that, which one of 1e8 results would miss once in 4000
// calls; a gated result multiplies such an error with a number of normal distribution: four times more.
Tolerance tolerance(const Problem& problem, int) {
    const LinearProblem p = linear_problem(problem);
    const double terms = static_cast<double>(p.in);
    const double amplified = p.gated ? 6.0 : 1.0;
    const double cut = amplified * (1e-5 + 2e-8 * terms);
    const double rounded = p.norm ? 7.0 * (p.gated ? 4.0 : 1.0) : 0.0;
    switch (p.dtype) {
        case Dtype::bf16:
            return {
                .relative_l2 = 4e-3 + 4e-9 * terms, .max_abs = cut + 1.6e-3 * rounded, .max_rel = 0x1.1p-8};
        case Dtype::fp16:
            return {
                .relative_l2 = 6e-4 + 4e-9 * terms, .max_abs = cut + 2e-4 * rounded, .max_rel = 0x1.1p-11};
        default: break;
    }
    const double walk = std::max(1.0, std::sqrt(terms / 4096));
    return {.relative_l2 = 3e-6 * walk, .max_abs = 2e-5 * amplified * walk, .max_rel = 2e-5};
}

Work work(const Problem& problem) {
    double bytes = 0;
    for (const Argument& argument : arguments(problem)) {
        if (argument.role != Role::workspace) bytes += static_cast<double>(argument.bytes());
    }
    return {.bytes = bytes, .flops = linear_problem(problem).flops()};
}

Plan reference_plan(const Problem& problem) {
    const LinearProblem p = linear_problem(problem);
    constexpr std::int64_t tile = 64;
    const std::int64_t tiles = ceil_div(p.out, tile) * ceil_div(p.tokens, tile);
    Plan plan{.launch_count = 1};
    plan.launches[0] = launch("linear_reference", {static_cast<std::uint32_t>(tiles), 1, 1}, 256);
    return plan;
}

}  // namespace

}  // namespace linear

extern const Family linear_family;
const Family linear_family{
    .name = "linear",
    .summary =
        "activation(x * weight^T + bias) + residual, or gated: activation(x * weight^T) * (x * up^T); x "
        "as it is or behind an RMSNorm",
    .fields = linear::fields,
    .variants = linear::variants,
    .validate = linear::validate,
    .arguments = linear::arguments,
    .scalars = linear::scalars,
    .tolerance = linear::tolerance,
    .work = linear::work,
    .reference_source = "linear/reference.cu",
    .reference_plan = linear::reference_plan,
};

}  // namespace hone
