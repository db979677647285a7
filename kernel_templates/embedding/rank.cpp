#include "kernel_templates/embedding/rank.h"

#include <algorithm>
#include <cmath>

namespace hone::embedding {

double predict_us(const EmbeddingProblem& p, const Cost& cost, const DeviceTraits& traits) {
    const double elements = static_cast<double>(p.tokens) * static_cast<double>(p.hidden);
    const double bytes = elements * static_cast<double>(p.element_bytes()) * (p.positions ? 3 : 2);
    const double memory_us = bytes / (0.86e-6 * traits.memory_bytes_per_s);

    const double lanes_per_us = 128 * 0.886e-3 * traits.sm_clock_khz;
    const double slots =
        static_cast<double>(p.tokens) * cost.lanes * (40 + cost.packets * (10 + 4 * cost.vector));
    const double busy = std::min<double>(traits.sm_count, std::ceil(slots / 1e4));
    const double issue_us = slots / (busy * lanes_per_us);

    const double rounds = std::ceil(cost.packets / 8);
    const double launch_us = cost.programmatic ? 0.29 : 0.69;
    return launch_us + 0.6 + 0.35 * (rounds - 1) + std::max(memory_us, issue_us);
}

}  // namespace hone::embedding
