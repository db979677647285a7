#include "kernel_templates/expert_linear/copies.h"

#include "kernel_templates/expert_linear/room.cuh"

namespace hone::expert_linear {

Plan in_front(const Launch& first, const Plan& plan) {
    Plan all = plan;
    for (int i = all.launch_count++; i > 0; --i)
        all.launches[static_cast<std::size_t>(i)] = all.launches[static_cast<std::size_t>(i - 1)];
    all.launches[0] = first;
    all.launches[0].programmatic = plan.launches[0].programmatic;
    return all;
}

Plan copies_in_front(const ExpertProblem& p, const Plan& plan, const Kernel& kernel) {
    constexpr std::int64_t threads = 128;  // as in copies.cuh
    Plan all = in_front(launch(kernel, grid_of(p.places()), threads), plan);
    all.workspace_bytes = partials_at(p.places(), result_bytes(p), copy_bytes(p, true));
    return all;
}

}  // namespace hone::expert_linear
