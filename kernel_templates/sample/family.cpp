#include <string>

#include "kernel_templates/kit/launches.h"
#include "kernel_templates/kit/work.h"
#include "kernel_templates/sample/row_plan.h"

namespace hone {
namespace sample {
namespace {

const Variant* const variants[] = {&cluster_row, &plain};

std::string validate(const Problem& problem) {
    const SampleProblem p(problem);
    if (p.rows > (std::int64_t{1} << 40) / p.vocabulary) {
        return "rows x vocabulary is " + std::to_string(p.rows) + " x " + std::to_string(p.vocabulary) +
               "; allowed: at most 2^40 elements";
    }
    return {};
}

// Tokens are the same to the last: a weight has the same bits wherever it is computed, and sums of masses are
// whole numbers.
Tolerance tolerance(const Problem&, int argument) {
    if (argument == out) return {.relative_l2 = 0, .max_abs = 0, .max_rel = 0};
    return {.relative_l2 = 1e-6, .max_abs = 1e-6, .max_rel = 1e-6};
}

Work work(const Problem& problem) {
    const SampleProblem p(problem);
    const double logits = static_cast<double>(p.rows) * static_cast<double>(p.vocabulary);
    return {.bytes = bytes_of(declared_arguments(problem)), .flops = 20.0 * logits};
}

constexpr Kernel reference_kernels[] = {{"sample_reference", call_args}};

Plan reference_plan(const Problem& problem) {
    return plan_of(launch(reference_kernels[0], grid_of(SampleProblem(problem).rows), 1024));
}

}  // namespace
}  // namespace sample

extern const Family sample_family;
const Family sample_family = sample::declared({
    .variants = sample::variants,
    .validate = sample::validate,
    .tolerance = sample::tolerance,
    .work = sample::work,
    .reference_source = "sample/reference.cu",
    .reference_kernels = sample::reference_kernels,
    .reference_plan = sample::reference_plan,
});

}  // namespace hone
