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

/// Blocks that share a multiprocessor slow each other.
double exchanges_us(const Cost& cost, double together) {
    const double values_us = cost.look == Look::values ? 7 : 0;
    const double us = 5 + 0.15 * cost.blocks + 1e-3 * cost.threads + values_us;
    return us * (0.75 + 0.25 * together);
}

/// A token of a block: few threads leave arithmetic waiting.
double looks_ns(const Cost& cost, double together) {
    switch (cost.look) {
        case Look::held: return 0.2 + 25 / cost.threads;
        case Look::masses: return 0.25 * together + 100 / cost.threads;
        case Look::values: return 0.02 * together + 73 / cost.threads;
    }
    return 0;
}

/// Clusters of a multiprocessor a block that run at once: the groups of multiprocessors that clusters stay
/// within leave some over.
double clusters_at_once(const Cost& cost, const DeviceTraits& traits) {
    const double all = std::floor(traits.sm_count / cost.blocks);
    return cost.blocks > 1 ? std::max(all - 2, 1.0) : all;
}

}  // namespace

double predict_us(const SampleProblem& p, const Cost& cost, const DeviceTraits& traits) {
    // Blocks share a multiprocessor before all others have one.
    const double blocks = static_cast<double>(p.rows) * cost.blocks;
    const double together = std::min(cost.resident, std::ceil(2 * blocks / traits.sm_count));
    const double rows = static_cast<double>(p.rows);
    const double waves = std::ceil(rows / (clusters_at_once(cost, traits) * cost.resident));

    const double clock = 1.98e6 / std::max(traits.sm_clock_khz, 1);
    const double part = p.filters ? 1.0 : 0.45;
    const double body_us =
        part * clock * (exchanges_us(cost, together) + 1e-3 * looks_ns(cost, together) * cost.tokens);

    const double logits = static_cast<double>(p.rows) * static_cast<double>(p.vocabulary);
    const double bytes = logits * static_cast<double>(p.element_bytes());
    const double memory_us = bytes / (0.86e-6 * traits.memory_bytes_per_s);
    return (cost.programmatic ? 0.3 : 1.0) + std::max(waves * body_us, memory_us);
}

}  // namespace hone::sample
