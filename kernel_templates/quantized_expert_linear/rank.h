// What the launches around a product cost (launches.h), and the product as rules of quantized_linear take it:
// preference, never part of a template's hash.
#pragma once

#include "kernel_templates/expert_linear/combine_rank.h"
#include "kernel_templates/expert_linear/tiles_rank.h"
#include "kernel_templates/quantized_expert_linear/quantized_expert_linear.h"

namespace hone::quantized_expert_linear {

/// Modelled microseconds of codes of x and of the sum over slots.
[[nodiscard]] inline double around_us(const QuantizedExpertProblem& p, const DeviceTraits& traits,
                                      bool programmatic) {
    const double sum_us = expert_linear::combine_us(p, traits, programmatic);
    if (p.is_packed()) return sum_us;
    const double elements = static_cast<double>(p.places()) * static_cast<double>(p.in);
    return sum_us + (programmatic ? 1.5 : 2.5) + 3.0 * elements / (0.85e-6 * traits.memory_bytes_per_s);
}

/// Bytes through device memory: weights of experts that have rows, x and results.
[[nodiscard]] inline double moved_bytes(const QuantizedExpertProblem& p) {
    const double rows = static_cast<double>(p.x_rows() * p.in + p.out_rows() * p.out);
    return p.weight_bytes() + rows * static_cast<double>(p.element_bytes());
}

}  // namespace hone::quantized_expert_linear
