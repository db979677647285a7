// What variants gemv and strips obey: linear's rules, behind a norm alone. In front of one a block would have
// to own whole slots of squares, and theirs own a few columns.
#pragma once

#include "kernel_templates/kit/rules.h"
#include "kernel_templates/shared_norm_linear/as_linear.h"

namespace hone::shared_norm_linear {

/// `variant`: linear's.
template <const Variant& variant>
inline constexpr Constraint few_tokens_constraints[] = {
    rule("whole slots of squares are no block's: behind a norm alone",
         [](const SharedNormProblem& p) { return p.norm && !p.next_norm; }),
    {"what linear's variant asks for", allowed_as_linear<variant>},
};

}  // namespace hone::shared_norm_linear
