// Sampling on the host: the problem as plain numbers and the variants. A variant's plan stands in
// <variant>_plan.cpp, its space and cost in <variant>.cpp, beside <variant>.cu.
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
