// The launch that copies gathered rows in front of a product (copies.cuh on the device): for variants with
// tensor copies.
#pragma once

#include "kernel_templates/expert_linear/expert_linear.h"
#include "kernel_templates/kit/launches.h"

namespace hone::expert_linear {

inline constexpr Kernel copies{"expert_linear_copies", call_args};

/// Bytes of a place's results and of its copied row, as room.cuh takes them.
[[nodiscard]] inline std::int64_t result_bytes(const ExpertProblem& p) {
    return p.combine ? p.out * p.element_bytes() : 0;
}
[[nodiscard]] inline std::int64_t copy_bytes(const ExpertProblem& p, bool copied) {
    return copied ? p.in * p.element_bytes() : 0;
}

/// `plan` behind one launch more, which is as programmatic as its first.
[[nodiscard]] Plan in_front(const Launch& first, const Plan& plan);

/// The plan of a product and what follows, behind `kernel` (the variant's expert_linear_copies); its
/// workspace holds the copies, too.
[[nodiscard]] Plan copies_in_front(const ExpertProblem&, const Plan& plan, const Kernel& kernel);

}  // namespace hone::expert_linear
