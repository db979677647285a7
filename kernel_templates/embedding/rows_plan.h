// How embedding/rows.cu is launched, and the variants that it is.
#pragma once

#include "kernel_templates/embedding/declaration.h"
#include "kernel_templates/kit/ceil_div.h"
#include "kernel_templates/kit/launches.h"

namespace hone::embedding {

struct RowsConfig {
    std::int64_t threads = 256;
    std::int64_t lanes = 32;
    std::int64_t vector = 1;
    std::int64_t programmatic = 0;
};

inline constexpr Kernel rows_kernels[] = {{"embedding_rows", call_args}};

[[nodiscard]] inline Plan rows_plan(const EmbeddingProblem& p, const RowsConfig& c, const DeviceTraits&) {
    Launch first = launch(rows_kernels[0], grid_of(ceil_div(p.tokens, c.threads / c.lanes)), c.threads);
    first.programmatic = c.programmatic != 0;
    return plan_of(first);
}

extern const Variant rows;
extern const Variant plain;

}  // namespace hone::embedding
