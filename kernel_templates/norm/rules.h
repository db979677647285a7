// Constraints that the norms' variants share. C is the config's struct.
#pragma once

#include "kernel_templates/kit/accesses.h"
#include "kernel_templates/kit/rules.h"
#include "kernel_templates/norm/rank.h"

namespace hone::norm {

/// For a config with a tunable `vector`; P has `hidden` and `element_bytes()`.
template <class C, class P = NormProblem>
inline constexpr Constraint vector_is_widest =
    rule("accesses are the widest that divide hidden and fit 16 bytes, or half of that",
         [](const P& p, const C& c) { return is_wide_access(p.hidden, p.element_bytes(), c.vector); });

}  // namespace hone::norm
