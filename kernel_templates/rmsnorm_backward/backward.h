// RMSNorm backward on the host: the problem as plain numbers and the variants. A variant's plan stands in
// <variant>_plan.cpp, its space and cost in <variant>.cpp, beside <variant>.cu.
#pragma once

#include "kernel_templates/kit/ceil_div.h"
#include "kernel_templates/kit/launches.h"
#include "kernel_templates/rmsnorm_backward/declaration.h"

namespace hone::rmsnorm_backward {

/// A problem as numbers; `residual` says whether dsum is there.
struct BackwardProblem : Fields {
    BackwardProblem() = default;
    explicit BackwardProblem(const Problem& problem) : Fields(fields_of(problem)) {}

    [[nodiscard]] std::int64_t element_bytes() const { return size_bytes(dtype); }
    /// Bytes of a row of dy, x and dsum.
    [[nodiscard]] std::int64_t read_bytes() const { return hidden * element_bytes() * (residual ? 3 : 2); }
    /// Packets of `vector` elements that each of `lanes` threads holds of a row.
    [[nodiscard]] std::int64_t packets(std::int64_t lanes, std::int64_t vector) const {
        return ceil_div(hidden, lanes * vector);
    }
};

extern const Variant held_rows;
extern const Variant two_pass;

/// A kernel of the whole call, programmatic or not.
[[nodiscard]] inline Launch launch_early(const Kernel& kernel, std::int64_t blocks, std::int64_t threads,
                                         bool programmatic) {
    Launch result = launch(kernel, grid_of(blocks), threads);
    result.programmatic = programmatic;
    return result;
}
/// The last launch of every variant, which adds partial rows of dweight: `lanes` packets of columns a block.
[[nodiscard]] inline Launch sum_launch(const Kernel& kernel, const BackwardProblem& norm, std::int64_t lanes,
                                       bool programmatic) {
    const std::int64_t columns = lanes * (norm.hidden % 4 == 0 ? 4 : 1);
    return launch_early(kernel, ceil_div(norm.hidden, columns), 256, programmatic);
}

}  // namespace hone::rmsnorm_backward
