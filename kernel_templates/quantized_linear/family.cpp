#include <algorithm>
#include <cmath>

#include "kernel_templates/linear/family_parts.h"
#include "kernel_templates/quantized_linear/quantized_linear.h"

namespace hone {
namespace quantized_linear {
namespace {

using namespace linear;

constexpr std::string_view format_choices[] = {"w4a16", "w8a16", "w8a8", "fp8"};

constexpr Field fields[] = {
    {"dtype", Field::Kind::choice, "element type of results, bias and residual, and of x that is not codes",
     1, 2, -1, dtype_choices},
    {"format", Field::Kind::choice, "of the weight's codes: docs/formats.md", 0, 3, -1, format_choices},
    {"group", Field::Kind::extent, "columns of the weight that share a scale; 0: all", 0, 128, 0},
    {"zeros", Field::Kind::choice, "codes have zero points, one a group", 0, 1, 0, yes_no},
    {"quantized_x", Field::Kind::choice, "x comes as codes with scales, as the weight's", 0, 1, 0, yes_no},
    norm_field,
    activation_field,
    gated_field,
    bias_field,
    residual_field,
    in_field,
    out_field,
    tokens_field,
};

const Variant* const variants[] = {&stream, &ring, &wgmma_w16, &wgmma_w8, &dequantize, &mma, &plain};

/// Codes as they are drawn: the standard deviation of their values. Uniform over all of 4 or 8 bits; fp8
/// normal, far from its largest number.
double code_deviation(const QuantizedProblem& p) {
    switch (p.format) {
        case Format::w4a16: return p.zeros ? 6.3 : 4.6;
        case Format::fp8: return 60.0;
        default: return 73.6;
    }
}

Dtype code_dtype(const QuantizedProblem& p) {
    return p.format == Format::fp8 ? Dtype::fp8_e4m3 : Dtype::int8;
}

void fill_codes(const QuantizedProblem& p, Argument& codes) {
    codes.fill = p.format == Format::fp8 ? Fill::normal : Fill::uniform;
    codes.fill_scale = p.format == Format::fp8 ? code_deviation(p) : 127.4;
}

/// Between half and three halves of what makes values of deviation `wanted`.
void fill_scales(const QuantizedProblem& p, Argument& scales, double wanted) {
    scales.fill = Fill::uniform;
    scales.fill_offset = wanted / code_deviation(p);
    scales.fill_scale = 0.5 * scales.fill_offset;
}

Argument weight_argument(const QuantizedProblem& p, std::string_view name, bool present) {
    Argument codes = p.is_packed() ? matrix(name, Role::weight, Dtype::int8, whole_blocks(p.out),
                                            packed_bytes(1, p.in, p.bits()), present)
                                   : matrix(name, Role::weight, code_dtype(p), p.out, p.in, present);
    fill_codes(p, codes);
    return codes;
}

Argument scales_argument(const QuantizedProblem& p, std::string_view name, bool present) {
    Argument scales = matrix(name, Role::weight, Dtype::fp32, 1, p.out, present);
    if (p.format == Format::w4a16)
        scales = matrix(name, Role::weight, p.dtype, whole_blocks(p.out) * p.groups(), block_rows, present);
    if (p.format == Format::fp8 && p.group != 0)
        scales = matrix(name, Role::weight, Dtype::fp32, ceil_div(p.out, scaled_block), p.groups(), present);
    fill_scales(p, scales, weight_deviation(p.dense()));
    return scales;
}

Argument zeros_argument(const QuantizedProblem& p, std::string_view name, bool present) {
    Argument zeros =
        matrix(name, Role::weight, Dtype::int8, whole_blocks(p.out) * p.groups(), block_rows, present);
    zeros.fill = Fill::uniform;
    zeros.fill_offset = 7.5;
    zeros.fill_scale = 7.5;
    return zeros;
}

std::vector<Argument> arguments(const Problem& problem) {
    const QuantizedProblem p = quantized_problem(problem);
    Argument x_argument = matrix("x", Role::input, p.dtype, p.tokens, p.in);
    Argument x_scales_argument =
        matrix("x_scales", Role::input, Dtype::fp32, p.tokens, p.groups(), p.quantized_x);
    if (p.quantized_x) {
        x_argument = matrix("x", Role::input, code_dtype(p), p.tokens, p.in);
        fill_codes(p, x_argument);
        fill_scales(p, x_scales_argument, 1.0);
    }
    return {x_argument,
            x_scales_argument,
            norm_weight_argument(p.dense()),
            weight_argument(p, "weight", true),
            scales_argument(p, "scales", true),
            zeros_argument(p, "zeros", p.zeros),
            weight_argument(p, "up", p.gated),
            scales_argument(p, "up_scales", p.gated),
            zeros_argument(p, "up_zeros", p.gated && p.zeros),
            matrix("bias", Role::weight, p.dtype, 1, p.out, p.bias),
            matrix("residual", Role::input, p.dtype, p.tokens, p.out, p.residual),
            matrix("out", Role::output, p.dtype, p.tokens, p.out),
            matrix("workspace", Role::workspace, Dtype::fp32, 1, 1)};
}

std::vector<ScalarArgument> scalars(const Problem& problem) {
    const QuantizedProblem p = quantized_problem(problem);
    const Scalar in = Scalar::of(p.in);
    const Scalar out = Scalar::of(p.out);
    return {{"tokens", Scalar::of(p.tokens)},
            {"x_stride", in},
            {"x_scale_stride", Scalar::of(p.groups())},
            {"weight_stride", in},
            {"up_stride", in},
            {"scale_stride", Scalar::of(std::int64_t{1})},
            {"residual_stride", out},
            {"out_stride", out},
            {"epsilon", Scalar::of(1e-5f), true}};
}

std::string wrong_group(const QuantizedProblem& p) {
    const std::string found = "group=" + std::to_string(p.group);
    if (p.group == 0) return {};
    if (p.format == Format::w8a16 || p.format == Format::w8a8)
        return found + ": codes of 8 bits have a scale a row; allowed: 0";
    if (p.format == Format::fp8 && p.group != scaled_block)
        return found + ": fp8 has blocks of 128 columns, or none; allowed: 128, 0";
    if (p.group != 32 && p.group != 64 && p.group != 128) return found + "; allowed: 32, 64, 128, 0";
    if (p.in % p.group != 0)
        return found + " does not divide in=" + std::to_string(p.in) + "; allowed: groups that do, or 0";
    return {};
}

std::string validate(const Problem& problem) {
    const QuantizedProblem p = quantized_problem(problem);
    if (p.dtype == Dtype::fp32) return "dtype=fp32: codes are multiplied with 16 bits; allowed: fp16, bf16";
    if (std::string error = wrong_group(p); !error.empty()) return error;
    if (p.zeros && p.format != Format::w4a16) return "zeros=yes is for format=w4a16 alone";
    if (p.quantized_x && p.is_packed()) return "quantized_x=yes is for format=w8a8 and fp8";
    if (p.quantized_x && p.norm) return "norm=yes needs x as it is: quantized_x=no";
    if (std::string error = wrong_gate(p.dense()); !error.empty()) return error;
    if (std::string error = too_large("tokens x in", p.tokens, p.in); !error.empty()) return error;
    if (std::string error = too_large("out x in", p.out, p.in); !error.empty()) return error;
    return too_large("tokens x out", p.tokens, p.out);
}

// One rounding to the output type; a value code * scale may have been rounded to it before it is multiplied,
// and so may x behind a norm, which the reference does not: the terms' errors of 1.6e-3 (bf16) and 2e-4
// (fp16) of their size add up like a random walk, as linear's family.cpp says. Integer products are exact.
// Tensor cores add the products of fp8 with 13 bits behind the point of the largest one, 32 at a time.
// Where all columns of a row share a scale, the values of equal codes are rounded alike: there are rows whose
// errors are 1.5 times as large.
//
// Where x becomes codes, a number half-way between two may become the other one: an fp8 code is then off by a
// sixteenth of itself, in one term of a sum whose terms have the size 1 / sqrt(in); allowed is so much of a
// term of 5 by 5 standard deviations.
Tolerance tolerance(const Problem& problem, int) {
    const QuantizedProblem p = quantized_problem(problem);
    const double terms = static_cast<double>(p.in);
    const bool bf16 = p.dtype == Dtype::bf16;
    const double amplified = p.gated ? 6.0 : 1.0;
    const double cut = amplified * (1e-5 + 2e-8 * terms);
    const double sums = p.format == Format::fp8 ? 1e-3 : 0.0;
    const double other_code = p.quantizes_x() ? 1.6 / std::sqrt(terms) : 0.0;
    const double alike = p.is_packed() && p.group == 0 ? 1.5 : 1.0;
    const double rounded = amplified * (7.0 * alike * ((bf16 ? 1.6e-3 : 2e-4) + sums) + other_code);
    return {.relative_l2 = (bf16 ? 4e-3 : 8e-4) + sums + 4e-9 * terms,
            .max_abs = cut + rounded,
            .max_rel = bf16 ? 0x1.1p-8 : 0x1.1p-11};
}

Work work(const Problem& problem) { return work_of(quantized_problem(problem).dense(), arguments(problem)); }

Plan reference_plan(const Problem& problem) {
    Plan plan{.launch_count = 1};
    plan.launches[0] =
        launch("quantized_linear_reference", reference_grid(quantized_problem(problem).dense()), 256);
    return plan;
}

}  // namespace
}  // namespace quantized_linear

extern const Family quantized_linear_family;
const Family quantized_linear_family{
    .name = "quantized_linear",
    .summary =
        "activation(x * weight^T + bias) + residual, or gated: activation(x * weight^T) * (x * up^T), with "
        "weights of 4 or 8 bits; x of 16 bits, or of 8 as the weight",
    .fields = quantized_linear::fields,
    .variants = quantized_linear::variants,
    .validate = quantized_linear::validate,
    .arguments = quantized_linear::arguments,
    .scalars = quantized_linear::scalars,
    .tolerance = quantized_linear::tolerance,
    .work = quantized_linear::work,
    .reference_source = "quantized_linear/reference.cu",
    .reference_plan = quantized_linear::reference_plan,
};

}  // namespace hone
