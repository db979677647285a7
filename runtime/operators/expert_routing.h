// ExpertRouting as the family's problems and calls. Generated from
// kernel_templates/expert_routing/operators.py by `./hone generate`.
#pragma once

#include "hone/expert_routing.h"
#include "kernel_templates/expert_routing/routing.h"
#include "runtime/operators/call_arguments.h"

namespace hone::runtime {

/// The problem of the largest call. Throws std::invalid_argument naming field, value and what is allowed.
[[nodiscard]] Problem problem_of(const ExpertRouting& description);

/// The arguments in the family's order, strides filled in.
[[nodiscard]] inline Call call_of(const ExpertRouting& description, const ExpertRoutingArgs& args,
                                  std::int64_t tokens) noexcept {
    Call call;
    call.pointers[expert_routing::logits] = pointer(args.logits);
    call.pointers[expert_routing::routing_weights] = args.routing_weights;
    call.pointers[expert_routing::starts] = args.starts;
    call.pointers[expert_routing::rows] = args.rows;
    call.pointers[expert_routing::workspace] = args.workspace;
    call.scalars[expert_routing::tokens] = Scalar::of(tokens);
    call.scalars[expert_routing::logits_stride] = Scalar::of(stride(args.logits_stride, description.experts));
    return call;
}

}  // namespace hone::runtime
