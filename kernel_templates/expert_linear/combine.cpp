#include "kernel_templates/expert_linear/combine.h"

namespace hone::expert_linear {

Plan combine_behind(const ExpertProblem& p, const Plan& product, const Kernel& kernel, std::int64_t vector) {
    if (!p.combine) return product;
    constexpr std::int64_t threads = 256;  // as in combine.cuh
    Plan plan = product;
    const auto last = static_cast<std::size_t>(plan.launch_count++);
    plan.launches[last] = launch(kernel, grid_of(p.tokens * ceil_div(p.out / vector, threads)), threads);
    plan.launches[last].programmatic = product.launches[0].programmatic;
    plan.workspace_bytes = p.places() * p.out * p.element_bytes();
    return plan;
}

}  // namespace hone::expert_linear
