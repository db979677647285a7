#include <algorithm>
#include <cmath>
#include <numbers>

#include "kernel_templates/linear/family_parts.h"
#include "kernel_templates/quantized_linear/calibration.h"
#include "kernel_templates/quantized_linear/formats.h"
#include "kernel_templates/quantized_linear/quantized_linear.h"
#include "kernel_templates/quantized_linear/variants.h"

namespace hone {
namespace quantized_linear {
namespace {

using linear::reference_grid;
using linear::too_large;
using linear::work_of;
using linear::wrong_gate;

const Variant* const variants[] = {&stream, &ring,       &ring_w8,    &wgmma_w16, &wgmma_w8,
                                   &walk,   &two_widths, &dequantize, &mma,       &plain};

std::string validate(const Problem& problem) {
    const QuantizedProblem p(problem);
    if (std::string error = wrong_format(p); !error.empty()) return error;
    if (p.quantized_x && p.is_packed()) return "quantized_x=yes is for format=w8a8 and fp8";
    if (p.quantized_x && p.norm) return "norm=yes needs x as it is: quantized_x=no";
    if (std::string error = wrong_gate(p.dense()); !error.empty()) return error;
    if (std::string error = too_large("tokens x in", p.tokens, p.in); !error.empty()) return error;
    if (std::string error = too_large("out x in", p.out, p.in); !error.empty()) return error;
    return too_large("tokens x out", p.tokens, p.out);
}

// One rounding to the output type; a value code * scale may have been rounded to it before it is multiplied,
// and so may x behind a norm, which the reference does not: the terms' errors of 1.6e-3 (bf16) and 2e-4
// (fp16) of their size add up like a random walk, as linear's family.cpp says; where both are rounded, two
// such walks. A row of few terms may happen to have large ones, which are rounded more coarsely: by half as
// much again at 64 terms (one of 145 small problems on an H200 had 5 such elements of 212,992). Integer
// products are exact.
// Tensor cores add the products of fp8 with 13 bits behind the point of the largest one, 32 at a time.
// The values of equal codes with the same scale are rounded alike: where all columns of a row share one,
// there are rows whose errors are 1.5 times as large. Groups add up as independent ones: with one or two a
// row (128 columns in groups of 128, 64) 1 to 3 of 13 million elements were 3 to 8 % beyond what many groups
// allow, in kernels whose results float64 gives as well when it multiplies the rounded values.
//
// The errors of gate and up add up in their product: of 24 draws of one token, 80 or 512 columns, a scale a
// row and a norm, in double arithmetic on values rounded to fp16, 5.6e-4 of the result's size on the mean
// and 8.0e-4 at most, without a gate 3.8e-4 and 4.9e-4 (one small problem on an H200 had 9.9e-4).
//
// Where x becomes codes, a number half-way between two may become the other one: an fp8 code is then off by a
// sixteenth of itself, in one term of a sum whose terms have the size 1 / sqrt(in); allowed is so much of a
// term of 5 by 5 standard deviations.
Tolerance tolerance(const Problem& problem, int) {
    const QuantizedProblem p(problem);
    const double terms = static_cast<double>(p.in);
    const bool bf16 = p.dtype == Dtype::bf16;
    const double amplified = p.gated ? 6.0 : 1.0;
    const double cut = amplified * (1e-5 + 2e-8 * terms);
    const double sums = p.format == QuantFormat::fp8 ? 1e-3 : 0.0;
    const double other_code = p.quantizes_x() ? 1.6 / std::sqrt(terms) : 0.0;
    const double alike = p.alike_roundings();
    const double walks = (p.norm ? std::numbers::sqrt2 : 1.0) * (1.0 + 4.0 / std::sqrt(terms));
    const double rounded = amplified * (7.0 * walks * alike * ((bf16 ? 1.6e-3 : 2e-4) + sums) + other_code);
    const double factors = p.gated ? std::numbers::sqrt2 : 1.0;
    return {.relative_l2 = factors * ((bf16 ? 4e-3 : 8e-4) + sums + 4e-9 * terms),
            .max_abs = cut + rounded,
            .max_rel = bf16 ? 0x1.1p-8 : 0x1.1p-11};
}

Work work(const Problem& problem) {
    return work_of(QuantizedProblem(problem).dense(), declared_arguments(problem));
}

constexpr Kernel reference_kernels[] = {{"quantized_linear_reference", call_args}};

Plan reference_plan(const Problem& problem) {
    return plan_of(launch(reference_kernels[0], reference_grid(QuantizedProblem(problem).dense()), 256));
}

}  // namespace
}  // namespace quantized_linear

extern const Family quantized_linear_family;
const Family quantized_linear_family = quantized_linear::declared({
    .variants = quantized_linear::variants,
    .validate = quantized_linear::validate,
    .tolerance = quantized_linear::tolerance,
    .work = quantized_linear::work,
    .calibration = quantized_linear::calibration,
    .kin = linear::plain_product,
    .reference_source = "quantized_linear/reference.cu",
    .reference_kernels = quantized_linear::reference_kernels,
    .reference_plan = quantized_linear::reference_plan,
});

}  // namespace hone
