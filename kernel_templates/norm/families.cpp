#include "kernel_templates/norm/norm.h"

#include <cstddef>
#include <optional>
#include <string>

#include "kernel_templates/kit/launches.h"
#include "kernel_templates/kit/work.h"

namespace hone::norm {
namespace {

std::string validate(const Problem& problem) {
    const NormProblem norm(problem);
    if (norm.rows > (std::int64_t{1} << 40) / norm.hidden) {
        return "rows x hidden is " + std::to_string(norm.rows) + " x " + std::to_string(norm.hidden) +
               "; allowed: at most 2^40 elements";
    }
    return {};
}

// One rounding to the output type, plus what float32 arithmetic may add. Quantized codes may differ by one
// step where the float32 result lies next to the border of two codes.
Tolerance tolerance(const Problem& problem, int argument) {
    const NormProblem norm(problem);
    if (argument == sum) return {.relative_l2 = 1e-7, .max_abs = 0, .max_rel = 1e-7};
    if (argument == scale) return {.relative_l2 = 1e-5, .max_abs = 0, .max_rel = 1e-5};
    switch (norm.out_dtype()) {
        case Dtype::int8: return {.relative_l2 = 1e-2, .max_abs = 1.01, .max_rel = 0};
        case Dtype::fp8_e4m3: return {.relative_l2 = 4e-2, .max_abs = 0x1.1p-9, .max_rel = 0.13};
        case Dtype::bf16: return {.relative_l2 = 3e-3, .max_abs = 1e-5, .max_rel = 0x1.1p-8};
        case Dtype::fp16: return {.relative_l2 = 4e-4, .max_abs = 2e-6, .max_rel = 0x1.1p-11};
        case Dtype::fp32: break;
    }
    return {.relative_l2 = 1e-6, .max_abs = 1e-5, .max_rel = 4e-6};
}

Work work(const Problem& problem) {
    const NormProblem norm(problem);
    return {.bytes = bytes_of(declared_arguments(problem)),
            .flops = 4.0 * static_cast<double>(norm.rows) * static_cast<double>(norm.hidden)};
}

/// A weight that has 1 added to it is read and multiplied as one that has not.
std::optional<Problem> without_offset(const Problem& problem) {
    if (!NormProblem(problem).unit_offset) return std::nullopt;
    return with(problem, static_cast<std::size_t>(field_index(*problem.family, "unit_offset")), 0);
}

constexpr Kernel reference_kernels[] = {{"norm_reference", call_args}};

Plan reference_plan(const Problem& problem) {
    return plan_of(launch(reference_kernels[0], grid_of(NormProblem(problem).rows), 256));
}

}  // namespace

Family family(Family own) {
    own.validate = validate;
    own.tolerance = tolerance;
    own.work = work;
    own.kin = without_offset;
    own.reference_kernels = reference_kernels;
    own.reference_plan = reference_plan;
    return own;
}

}  // namespace hone::norm
