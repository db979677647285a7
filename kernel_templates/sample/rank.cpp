#include "kernel_templates/sample/rank.h"

#include <algorithm>
#include <cmath>

namespace hone::sample {

std::int64_t widest_vector(const SampleProblem& p) {
    std::int64_t vector = 16 / p.element_bytes();
    while (p.vocabulary % vector != 0) vector /= 2;
    return vector;
}

double predict_us(const SampleProblem& p, const Cost& cost, const DeviceTraits& traits) {
    const double ns_a_token = cost.held ? 0.2 : 0.36 + 77 / cost.threads;
    const double exchanges_us = 5 + 0.25 * cost.blocks;
    const double clock = 1.98e6 / std::max(traits.sm_clock_khz, 1);
    const double part = p.filters ? 1.0 : 0.45;
    const double body_us = part * clock * (exchanges_us + 1e-3 * ns_a_token * cost.tokens);

    const double waves = std::ceil(static_cast<double>(p.rows) * cost.blocks / traits.sm_count);
    const double logits = static_cast<double>(p.rows) * static_cast<double>(p.vocabulary);
    const double bytes = logits * static_cast<double>(p.element_bytes());
    const double memory_us = bytes / (0.86e-6 * traits.memory_bytes_per_s);
    return (cost.programmatic ? 0.3 : 1.0) + std::max(waves * body_us, memory_us);
}

}  // namespace hone::sample
