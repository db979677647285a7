// Generated from kernel_templates/expert_routing/operators.py by `./hone generate`.
#include "kernel_templates/expert_routing/declaration.h"

#include "kernel_templates/expert_routing/routing.h"

namespace hone::expert_routing {

std::vector<Argument> declared_arguments(const Problem& problem) {
    const RoutingProblem p(problem);
    return {
        {.name = "logits", .dtype = p.dtype, .shape = {1, 1, p.tokens, p.experts}, .fill_scale = 2.0},
        {.name = "routing_weights", .role = Role::output, .shape = {1, 1, p.tokens, p.top_k}},
        {.name = "starts", .role = Role::output, .dtype = index_dtype, .shape = {1, 1, p.experts + 1, 1}},
        {.name = "rows", .role = Role::output, .dtype = index_dtype, .shape = {1, 1, p.places(), 1}},
        {.name = "workspace", .role = Role::workspace, .dtype = index_dtype},
    };
}

std::vector<ScalarArgument> declared_scalars(const Problem& problem) {
    const RoutingProblem p(problem);
    return {
        {.name = "tokens", .tuning_value = Scalar::of(p.tokens)},
        {.name = "logits_stride", .tuning_value = Scalar::of(p.experts)},
    };
}

}  // namespace hone::expert_routing
