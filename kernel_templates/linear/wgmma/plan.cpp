#include "kernel_templates/linear/wgmma/plan.h"

namespace hone::linear {

Plan wgmma_plan(const LinearProblem& p, const gemm::WgmmaConfig& c, const DeviceTraits& traits) {
    return normalize_first(p, gemm::plan_product(wgmma_kernels[0], p, c, traits, {.result = p.dtype}));
}

}  // namespace hone::linear
