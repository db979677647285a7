#include "kernel_templates/sample/rank.h"

#include <algorithm>
#include <cmath>

namespace hone::sample {

std::int64_t widest_vector(const SampleProblem& p) {
    std::int64_t vector = 16 / p.element_bytes();
    while (p.vocabulary % vector != 0) vector /= 2;
    return vector;
}

namespace {

double exchanges_us(const Cost& cost) {
    const double values_us = cost.look == Look::values ? 3.5 : 0;
    return 5 + 0.25 * cost.blocks + values_us;
}

/// A token of a block: few threads leave arithmetic waiting.
double looks_ns(const Cost& cost, double together) {
    if (cost.look == Look::held) return 0.2;
    const double threads = cost.threads * together;
    const double all_ns = cost.look == Look::values ? 0.045 + 26 / threads : 0.2 + 77 / threads;
    const double last_ns = cost.blocks > 1 ? 0.05 + 25 / cost.threads : 0.2;
    return all_ns * together + last_ns;
}

}  // namespace

double predict_us(const SampleProblem& p, const Cost& cost, const DeviceTraits& traits) {
    const double blocks = static_cast<double>(p.rows) * cost.blocks;
    const double together = std::min(cost.resident, std::ceil(blocks / traits.sm_count));
    const double waves = std::ceil(blocks / (traits.sm_count * together));

    const double clock = 1.98e6 / std::max(traits.sm_clock_khz, 1);
    const double part = p.filters ? 1.0 : 0.45;
    const double body_us =
        part * clock * (exchanges_us(cost) + 1e-3 * looks_ns(cost, together) * cost.tokens);

    const double logits = static_cast<double>(p.rows) * static_cast<double>(p.vocabulary);
    const double bytes = logits * static_cast<double>(p.element_bytes());
    const double memory_us = bytes / (0.86e-6 * traits.memory_bytes_per_s);
    return (cost.programmatic ? 0.3 : 1.0) + std::max(waves * body_us, memory_us);
}

}  // namespace hone::sample
