#include <algorithm>
#include <cmath>

#include "kernel_templates/kit/launches.h"
#include "kernel_templates/kit/tunables.h"
#include "kernel_templates/linear/calibration.h"
#include "kernel_templates/linear/family_parts.h"
#include "kernel_templates/linear/few_tokens_rules.h"
#include "kernel_templates/linear/variants.h"

namespace hone {
namespace linear {
namespace {

const Variant* const variants[] = {&ring,   &wgmma,     &copied, &wgmma_tf32, &mma,
                                   &strips, &mma_tiles, &gemv,   &plain};

std::string validate(const Problem& problem) {
    const LinearProblem p(problem);
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
    const LinearProblem p(problem);
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

Work work(const Problem& problem) { return work_of(LinearProblem(problem), declared_arguments(problem)); }

/// Few tokens' norms become part of the products: a launch less.
Candidate from_plain_product(const Problem& problem, const Candidate& candidate) {
    if (candidate.variant != &gemv && candidate.variant != &mma) return candidate;
    const LinearProblem p(problem);
    auto config = values_of<FewTokensConfig>(candidate.config);
    const bool can_fold =
        candidate.variant == &gemv ? few_tokens::gemv_can_fold_norm(p) : few_tokens::mma_can_fold_norm(p);
    config.fold_norm = p.norm && can_fold ? 1 : 0;
    return {candidate.variant, config_of(config)};
}

constexpr Kernel reference_kernels[] = {{"linear_reference", call_args}};

Plan reference_plan(const Problem& problem) {
    return plan_of(launch(reference_kernels[0], reference_grid(LinearProblem(problem)), 256));
}

}  // namespace
}  // namespace linear

extern const Family linear_family;
const Family linear_family = linear::declared({
    .variants = linear::variants,
    .validate = linear::validate,
    .tolerance = linear::tolerance,
    .work = linear::work,
    .calibration = linear::calibration,
    .kin = linear::plain_product,
    .from_kin = linear::from_plain_product,
    .reference_source = "linear/reference.cu",
    .reference_kernels = linear::reference_kernels,
    .reference_plan = linear::reference_plan,
});

}  // namespace hone
