#include "kernel_templates/kit/launches.h"
#include "kernel_templates/kit/work.h"
#include "kernel_templates/quantized_linear/variants.h"
#include "kernel_templates/shared_norm_linear/sharing.h"
#include "kernel_templates/shared_norm_quantized_linear/shared_norm_quantized_linear.h"

namespace hone {

extern const Family quantized_linear_family;

namespace shared_norm_quantized_linear {

// quantized_linear's plans know x and its stride by their places.
static_assert(x == static_cast<int>(quantized_linear::x) &&
              x_stride == static_cast<int>(quantized_linear::x_stride));

Problem quantized_problem(const Problem& sharing) {
    const quantized_linear::QuantizedProblem p = SharedNormQuantizedProblem(sharing).product();
    // In the order of the family's fields.
    return {.family = &quantized_linear_family,
            .values = {static_cast<std::int64_t>(p.dtype), static_cast<std::int64_t>(p.format), p.group,
                       p.zeros, p.quantized_x, p.norm, static_cast<std::int64_t>(p.activation), p.gated,
                       p.bias, p.residual, p.in, p.out, p.tokens}};
}

namespace {

const Variant* const variants[] = {&ring, &plain};

std::string validate(const Problem& problem) {
    const SharedNormQuantizedProblem p(problem);
    if (!p.product().is_packed())
        return "codes that are multiplied with codes have no norm to share; allowed: format=w4a16, w8a16";
    if (std::string error = shared_norm_linear::wrong_sharing(p); !error.empty()) return error;
    return quantized_linear_family.validate(quantized_problem(problem));
}

Tolerance tolerance(const Problem& problem, int argument) {
    const Tolerance result =
        quantized_linear_family.tolerance(quantized_problem(problem), quantized_linear::out);
    return argument == squares ? shared_norm_linear::tolerance_of_squares(result)
                               : shared_norm_linear::tolerance_of_results(result);
}

Work work(const Problem& problem) {
    Work work = quantized_linear_family.work(quantized_problem(problem));
    work.bytes += shared_norm_linear::bytes_of_sharing(SharedNormQuantizedProblem(problem));
    return work;
}

std::optional<Problem> kin(const Problem& problem) { return quantized_problem(problem); }
Candidate from_kin(const Problem&, const Candidate& candidate) {
    if (candidate.variant != &quantized_linear::ring) return candidate;
    return {&ring, candidate.config};
}

constexpr Kernel reference_kernels[] = {{"shared_norm_quantized_linear_reference", call_args}};

Plan reference_plan(const Problem& problem) {
    const SharedNormQuantizedProblem p(problem);
    return plan_of(launch(reference_kernels[0], grid_of(p.blocks(1)), 32 * linear::square_columns));
}

}  // namespace
}  // namespace shared_norm_quantized_linear

extern const Family shared_norm_quantized_linear_family;
const Family shared_norm_quantized_linear_family = shared_norm_quantized_linear::declared({
    .device_namespace = "quantized_linear",
    .variants = shared_norm_quantized_linear::variants,
    .validate = shared_norm_quantized_linear::validate,
    .tolerance = shared_norm_quantized_linear::tolerance,
    .work = shared_norm_quantized_linear::work,
    .kin = shared_norm_quantized_linear::kin,
    .from_kin = shared_norm_quantized_linear::from_kin,
    .reference_source = "shared_norm_quantized_linear/reference.cu",
    .reference_kernels = shared_norm_quantized_linear::reference_kernels,
    .reference_plan = shared_norm_quantized_linear::reference_plan,
});

}  // namespace hone
