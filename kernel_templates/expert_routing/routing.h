// Routing on the host: the problem as numbers.
#pragma once

#include <cstdint>

#include "kernel_templates/expert_routing/declaration.h"

namespace hone::expert_routing {

struct RoutingProblem : Fields {
    RoutingProblem() = default;
    explicit RoutingProblem(const Problem& problem) : Fields(fields_of(problem)) {}

    [[nodiscard]] std::int64_t element_bytes() const { return size_bytes(dtype); }
    /// Pairs of a token and a slot.
    [[nodiscard]] std::int64_t places() const { return tokens * top_k; }
};

}  // namespace hone::expert_routing
