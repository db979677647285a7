#include <cmath>
#include <string>

#include "kernel_templates/kit/work.h"
#include "kernel_templates/rmsnorm_backward/backward.h"

namespace hone {
namespace rmsnorm_backward {
namespace {

const Variant* const variants[] = {&held_rows, &two_pass};

std::string validate(const Problem& problem) {
    const BackwardProblem norm(problem);
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
    const BackwardProblem norm(problem);
    const double spread = argument == dweight ? std::sqrt(static_cast<double>(norm.rows)) : 1.0;
    switch (norm.dtype) {
        case Dtype::bf16: return {.relative_l2 = 3e-3, .max_abs = 1e-5 * spread, .max_rel = 0x1.1p-8};
        case Dtype::fp16: return {.relative_l2 = 4e-4, .max_abs = 4e-6 * spread, .max_rel = 0x1.1p-11};
        default: return {.relative_l2 = 2e-6, .max_abs = 1e-5 * spread, .max_rel = 1e-5};
    }
}

Work work(const Problem& problem) {
    const BackwardProblem norm(problem);
    return {.bytes = bytes_of(declared_arguments(problem)),
            .flops = 12.0 * static_cast<double>(norm.rows) * static_cast<double>(norm.hidden)};
}

constexpr Kernel reference_kernels[] = {{"rmsnorm_backward_reference_input", call_args},
                                        {"rmsnorm_backward_reference_weight", call_args}};

Plan reference_plan(const Problem& problem) {
    const BackwardProblem norm(problem);
    Plan plan{.launch_count = 2, .workspace_bytes = norm.rows * 8};
    plan.launches[0] = launch(reference_kernels[0], grid_of(norm.rows), 256);
    plan.launches[1] = launch(reference_kernels[1], grid_of(ceil_div(norm.hidden, 32)), 256);
    return plan;
}

}  // namespace
}  // namespace rmsnorm_backward

extern const Family rmsnorm_backward_family;
const Family rmsnorm_backward_family = rmsnorm_backward::declared({
    .variants = rmsnorm_backward::variants,
    .validate = rmsnorm_backward::validate,
    .tolerance = rmsnorm_backward::tolerance,
    .work = rmsnorm_backward::work,
    .reference_source = "rmsnorm_backward/reference.cu",
    .reference_kernels = rmsnorm_backward::reference_kernels,
    .reference_plan = rmsnorm_backward::reference_plan,
});

}  // namespace hone
