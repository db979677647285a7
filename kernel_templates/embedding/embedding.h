// Embedding on the host: the problem as plain numbers and the variants. Both are rows.cu; its plan stands in
// rows_plan.h, its space and cost in rows.cpp.
#pragma once

#include "kernel_templates/embedding/declaration.h"

namespace hone::embedding {

/// A problem as numbers.
struct EmbeddingProblem : Fields {
    EmbeddingProblem() = default;
    explicit EmbeddingProblem(const Problem& problem) : Fields(fields_of(problem)) {}

    [[nodiscard]] std::int64_t element_bytes() const { return size_bytes(dtype); }
    [[nodiscard]] Dtype index_type() const { return index == IndexType::int64 ? wide_index_dtype : index_dtype; }
    /// Between ids when tuning, so that they reach over all of `count` rows.
    [[nodiscard]] double step(std::int64_t count) const {
        return static_cast<double>(count - 1) / static_cast<double>(tokens);
    }
};

extern const Variant rows;
extern const Variant plain;

}  // namespace hone::embedding
