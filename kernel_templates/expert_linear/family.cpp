#include <algorithm>
#include <cmath>
#include <string>

#include "kernel_templates/expert_linear/calibration.h"
#include "kernel_templates/expert_linear/expert_linear.h"
#include "kernel_templates/expert_linear/sizes.h"
#include "kernel_templates/expert_linear/variants.h"

namespace hone {
namespace expert_linear {
namespace {

const Variant* const variants[] = {&strips, &drawn_tiles, &wgmma, &mma_tiles, &gemv, &plain};

std::string validate(const Problem& problem) { return wrong_sizes(ExpertProblem(problem)); }

/// Standard deviation of what a rounded product is off by, for each unit of its size.
double rounding(Dtype dtype) { return dtype == Dtype::bf16 ? 0x1p-9 : dtype == Dtype::fp16 ? 0x1p-12 : 0.0; }

// As linear's: one rounding to the output type, and what float32 sums add. Where results are combined, those
// of the slots were rounded before: errors of up to half a unit of results of normal distribution (gated: a
// product of two such numbers), of which top_k add up like a random walk; eight times that are allowed.
Tolerance tolerance(const Problem& problem, int) {
    const ExpertProblem p(problem);
    const double terms = static_cast<double>(p.in);
    const double amplified = p.gated ? 6.0 : 1.0;
    const double slots = p.combine ? std::sqrt(static_cast<double>(p.top_k)) * (p.gated ? 4.0 : 1.0) : 0.0;
    const double most = amplified * (1e-5 + 2e-8 * terms) + 8 * slots * rounding(p.dtype);
    const double both = p.combine ? 1.5 : 1.0;
    if (p.dtype == Dtype::bf16)
        return {.relative_l2 = both * 4e-3 + 4e-9 * terms, .max_abs = most, .max_rel = 0x1.1p-8};
    if (p.dtype == Dtype::fp16)
        return {.relative_l2 = both * 6e-4 + 4e-9 * terms, .max_abs = most, .max_rel = 0x1.1p-11};
    const double walk = std::max(1.0, std::sqrt(terms / 4096)) * (p.combine ? 2 * slots : 1.0);
    return {.relative_l2 = 6e-6 * walk, .max_abs = 2e-5 * amplified * walk, .max_rel = 2e-5};
}

Work work(const Problem& problem) {
    const ExpertProblem p(problem);
    return work_of(p, p.weight_bytes());
}

constexpr Kernel reference_kernels[] = {{"expert_linear_reference", call_args},
                                        {"expert_linear_reference_combine", call_args}};

Plan reference_plan(const Problem& problem) {
    return reference_plan_of(ExpertProblem(problem), reference_kernels);
}

}  // namespace
}  // namespace expert_linear

extern const Family expert_linear_family;
const Family expert_linear_family = expert_linear::declared({
    .variants = expert_linear::variants,
    .validate = expert_linear::validate,
    .tolerance = expert_linear::tolerance,
    .work = expert_linear::work,
    .calibration = expert_linear::calibration,
    .reference_source = "expert_linear/reference.cu",
    .reference_kernels = expert_linear::reference_kernels,
    .reference_plan = expert_linear::reference_plan,
});

}  // namespace hone
