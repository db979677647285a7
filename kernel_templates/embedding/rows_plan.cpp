#include "kernel_templates/embedding/rows_plan.h"

#include "kernel_templates/kit/ceil_div.h"

namespace hone::embedding {

Plan rows_plan(const EmbeddingProblem& p, const RowsConfig& c, const DeviceTraits&) {
    Launch first = launch(rows_kernels[0], grid_of(ceil_div(p.tokens, c.threads / c.lanes)), c.threads);
    first.programmatic = c.programmatic != 0;
    return plan_of(first);
}

}  // namespace hone::embedding
