// Sampling on the host: the problem as plain numbers and the variants. Both are row.cu; its plan stands in
// row_plan.h, its space and cost in row.cpp.
#pragma once

#include "kernel_templates/sample/declaration.h"

namespace hone::sample {

/// A problem as numbers.
struct SampleProblem : Fields {
    SampleProblem() = default;
    explicit SampleProblem(const Problem& problem) : Fields(fields_of(problem)) {}

    [[nodiscard]] std::int64_t element_bytes() const { return size_bytes(dtype); }
};

extern const Variant cluster_row;
extern const Variant plain;

}  // namespace hone::sample
