#include "kernel_templates/embedding/plain_plan.h"

namespace hone::embedding {

Plan plain_plan(const EmbeddingProblem& p, const PlainConfig& c, const DeviceTraits&) {
    Launch first = launch(plain_kernels[0], grid_of(p.tokens), c.threads);
    first.programmatic = c.programmatic != 0;
    return plan_of(first);
}

}  // namespace hone::embedding
