#include "kernel_templates/quantized_expert_linear/launches.h"

#include "kernel_templates/expert_linear/copies.h"

namespace hone::quantized_expert_linear {

Plan around(const QuantizedExpertProblem& p, const Plan& product, const Kernel (&kernels)[3],
            std::int64_t vector) {
    Plan plan = expert_linear::combine_behind(p, product, kernels[2], vector);
    plan.workspace_bytes = p.room().bytes;
    if (p.is_packed()) return plan;
    constexpr std::int64_t threads = 128;  // as in codes.cuh
    return expert_linear::in_front(launch(kernels[1], grid_of(p.places()), threads), plan);
}

}  // namespace hone::quantized_expert_linear
