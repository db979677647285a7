#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "kernel_templates/expert_linear/sizes.h"
#include "kernel_templates/quantized_expert_linear/quantized_expert_linear.h"
#include "kernel_templates/quantized_expert_linear/variants.h"
#include "kernel_templates/quantized_linear/formats.h"

namespace hone {
namespace quantized_expert_linear {
namespace {

const Variant* const variants[] = {&wgmma_w16, &wgmma_w8, &mma, &plain};

std::string validate(const Problem& problem) {
    const QuantizedExpertProblem p(problem);
    if (std::string error = quantized_linear::wrong_format(p.coded()); !error.empty()) return error;
    return expert_linear::wrong_sizes(p);
}

// As quantized_linear's (family.cpp there says why), also where errors of gate and up add up in their
// product; where results are combined those of the slots were rounded before, of which top_k add up like a
// random walk.
Tolerance tolerance(const Problem& problem, int) {
    const QuantizedExpertProblem p(problem);
    const double terms = static_cast<double>(p.in);
    const bool bf16 = p.dtype == Dtype::bf16;
    const double amplified = p.gated ? 6.0 : 1.0;
    const double sums = p.format == QuantFormat::fp8 ? 1e-3 : 0.0;
    const double other_code = p.is_packed() ? 0.0 : 1.6 / std::sqrt(terms);
    const double alike = p.coded().alike_roundings();
    const double walks = 1.0 + 4.0 / std::sqrt(terms);
    const double rounded = amplified * (7.0 * walks * alike * ((bf16 ? 1.6e-3 : 2e-4) + sums) + other_code);
    const double slots = p.combine ? std::sqrt(static_cast<double>(p.top_k)) * (p.gated ? 4.0 : 1.0) : 0.0;
    const double together = p.combine ? std::sqrt(static_cast<double>(p.top_k)) : 1.0;
    const double factors = p.gated ? std::numbers::sqrt2 : 1.0;
    return {.relative_l2 = factors * ((p.combine ? 1.5 : 1.0) * (bf16 ? 4e-3 : 8e-4) + sums + 4e-9 * terms),
            .max_abs = together * (amplified * (1e-5 + 2e-8 * terms) + rounded) +
                       8 * slots * (bf16 ? 0x1p-9 : 0x1p-12),
            .max_rel = bf16 ? 0x1.1p-8 : 0x1.1p-11};
}

Work work(const Problem& problem) {
    const QuantizedExpertProblem p(problem);
    return expert_linear::work_of(p, p.weight_bytes());
}

constexpr Kernel reference_kernels[] = {{"quantized_expert_linear_reference", call_args},
                                        {"quantized_expert_linear_reference_combine", call_args}};

Plan reference_plan(const Problem& problem) {
    return expert_linear::reference_plan_of(QuantizedExpertProblem(problem), reference_kernels);
}

}  // namespace
}  // namespace quantized_expert_linear

extern const Family quantized_expert_linear_family;
const Family quantized_expert_linear_family = quantized_expert_linear::declared({
    .device_namespace = "expert_linear",
    .variants = quantized_expert_linear::variants,
    .validate = quantized_expert_linear::validate,
    .tolerance = quantized_expert_linear::tolerance,
    .work = quantized_expert_linear::work,
    .reference_source = "quantized_expert_linear/reference.cu",
    .reference_kernels = quantized_expert_linear::reference_kernels,
    .reference_plan = quantized_expert_linear::reference_plan,
});

}  // namespace hone
