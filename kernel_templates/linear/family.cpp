#include <algorithm>
#include <cmath>

#include "kernel_templates/linear/family_parts.h"

namespace hone {
namespace linear {
namespace {

constexpr Field fields[] = {
    {"dtype", Field::Kind::choice, "element type of every tensor", 0, 2, -1, dtype_choices},
    norm_field,
    activation_field,
    gated_field,
    bias_field,
    residual_field,
    in_field,
    out_field,
    tokens_field,
};

const Variant* const variants[] = {&wgmma, &wgmma_tf32, &mma, &mma_tiles, &gemv, &plain};

std::vector<Argument> arguments(const Problem& problem) {
    const LinearProblem p = linear_problem(problem);
    Argument weight_argument = matrix("weight", Role::weight, p.dtype, p.out, p.in);
    Argument up_argument = matrix("up", Role::weight, p.dtype, p.out, p.in, p.gated);
    weight_argument.fill_scale = weight_deviation(p);
    up_argument.fill_scale = weight_deviation(p);
    return {matrix("x", Role::input, p.dtype, p.tokens, p.in),
            norm_weight_argument(p),
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

std::string validate(const Problem& problem) {
    const LinearProblem p = linear_problem(problem);
    if (std::string error = wrong_gate(p); !error.empty()) return error;
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

Work work(const Problem& problem) { return work_of(linear_problem(problem), arguments(problem)); }

Plan reference_plan(const Problem& problem) {
    Plan plan{.launch_count = 1};
    plan.launches[0] = launch("linear_reference", reference_grid(linear_problem(problem)), 256);
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
