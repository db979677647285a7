#include <string>

#include "kernel_templates/embedding/rows_plan.h"
#include "kernel_templates/kit/ceil_div.h"
#include "kernel_templates/kit/launches.h"

namespace hone {
namespace embedding {
namespace {

const Variant* const variants[] = {&rows, &plain};

std::string validate(const Problem& problem) {
    const EmbeddingProblem p(problem);
    if (p.tokens > (std::int64_t{1} << 38) / p.hidden) {
        return "tokens x hidden is " + std::to_string(p.tokens) + " x " + std::to_string(p.hidden) +
               "; allowed: at most 2^38 elements";
    }
    return {};
}

// One rounding to the result's type, plus that of the product in float32; a copy has no error.
Tolerance tolerance(const Problem& problem, int) {
    const EmbeddingProblem p(problem);
    if (!p.scale && !p.positions) return {.relative_l2 = 0, .max_abs = 0, .max_rel = 0};
    switch (p.dtype) {
        case Dtype::bf16: return {.relative_l2 = 3e-3, .max_abs = 1e-6, .max_rel = 0x1.1p-8};
        case Dtype::fp16: return {.relative_l2 = 4e-4, .max_abs = 1e-6, .max_rel = 0x1.1p-11};
        default: return {.relative_l2 = 1e-6, .max_abs = 1e-6, .max_rel = 1e-6};
    }
}

/// Rows that are read, and those that are written; indices are next to nothing.
Work work(const Problem& problem) {
    const EmbeddingProblem p(problem);
    const double elements = static_cast<double>(p.tokens) * static_cast<double>(p.hidden);
    const double copies = p.positions ? 3 : 2;
    const double indices = static_cast<double>(p.tokens * size_bytes(p.index_type())) * (p.positions ? 2 : 1);
    return {.bytes = copies * elements * static_cast<double>(p.element_bytes()) + indices,
            .flops = elements * ((p.scale ? 1 : 0) + (p.positions ? 1 : 0))};
}

constexpr Kernel reference_kernels[] = {{"embedding_reference", call_args}};

Plan reference_plan(const Problem& problem) {
    const EmbeddingProblem p(problem);
    return plan_of(launch(reference_kernels[0], grid_of(ceil_div(p.tokens * p.hidden, 256)), 256));
}

}  // namespace
}  // namespace embedding

extern const Family embedding_family;
const Family embedding_family = embedding::declared({
    .variants = embedding::variants,
    .validate = embedding::validate,
    .tolerance = embedding::tolerance,
    .work = embedding::work,
    .reference_source = "embedding/reference.cu",
    .reference_kernels = embedding::reference_kernels,
    .reference_plan = embedding::reference_plan,
});

}  // namespace hone
