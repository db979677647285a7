#include "kernel_templates/linear/wgmma/plan.h"

namespace hone::linear {

Plan wgmma_plan(const LinearProblem& p, const WgmmaConfig& c, const DeviceTraits& traits) {
    const Plan product =
        gemm::plan_product(wgmma_kernels[0], p, c, traits, {.result = p.dtype}, c.neighbours);
    return normalize_first(p, product, wgmma_kernels[1]);
}

}  // namespace hone::linear
