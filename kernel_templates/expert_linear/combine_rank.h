// What the launches around a product cost (combine.h, copies.h): preference, never part of a template's hash.
#pragma once

#include "kernel_templates/expert_linear/expert_linear.h"

namespace hone::expert_linear {

/// Modelled microseconds: products' results are written and read once more; nothing where nothing is
/// combined.
[[nodiscard]] inline double combine_us(const ExpertProblem& p, const DeviceTraits& traits,
                                       bool programmatic) {
    if (!p.combine) return 0;
    const double elements = static_cast<double>(2 * p.places() + p.tokens) * static_cast<double>(p.out);
    return (programmatic ? 1.2 : 2.2) +
           elements * static_cast<double>(p.element_bytes()) / (0.85e-6 * traits.memory_bytes_per_s);
}

/// Modelled microseconds of copies of gathered rows in front: written, and read from level 2.
[[nodiscard]] inline double copies_us(const ExpertProblem& p, const DeviceTraits& traits, bool programmatic) {
    const double bytes = static_cast<double>((p.places() + p.tokens) * p.in * p.element_bytes());
    return (programmatic ? 1.5 : 2.5) + bytes / (0.85e-6 * traits.memory_bytes_per_s);
}

}  // namespace hone::expert_linear
