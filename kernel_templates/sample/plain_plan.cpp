#include "kernel_templates/sample/plain_plan.h"

namespace hone::sample {

Plan plain_plan(const SampleProblem& p, const PlainConfig& c, const DeviceTraits&) {
    Launch first = launch(plain_kernels[0], grid_of(p.rows), c.threads);
    first.programmatic = c.programmatic != 0;
    return plan_of(first);
}

}  // namespace hone::sample
