#include "kernel_templates/rmsnorm_backward/rank.h"

#include <cmath>

#include "kernel_templates/kit/clock.h"

namespace hone::rmsnorm_backward {

double predict_us(const BackwardProblem& norm, const Cost& cost, const DeviceTraits& traits) {
    const double elements = static_cast<double>(norm.rows) * static_cast<double>(norm.hidden);
    const double bytes_per_us = 0.884 * traits.memory_bytes_per_s * 1e-6;
    const double read_bytes = static_cast<double>(norm.rows * norm.read_bytes()) * cost.read_passes;
    const double written_bytes = elements * static_cast<double>(norm.element_bytes());
    const double bandwidth_us = (read_bytes + written_bytes) / bytes_per_us;

    constexpr double memory_latency_us = 0.33;
    const double draw_us =
        read_bytes * (memory_latency_us + cost.wait_us) / (cost.bytes_in_flight * traits.sm_count);
    const double lanes_per_us = 128 * busy_cycles_per_us(traits);
    const double issue_us = elements * cost.instructions / (traits.sm_count * lanes_per_us);
    constexpr double sharpness = 2.5;
    const double body_us = std::pow(
        std::pow(bandwidth_us, sharpness) + std::pow(draw_us, sharpness) + std::pow(issue_us, sharpness),
        1.0 / sharpness);

    // Written and read at twice the memory's rate, since they stay in L2.
    const double partials_us = cost.partial_rows * static_cast<double>(norm.hidden) * 8 / (2 * bytes_per_us);
    const double launch_us = cost.launches * ((cost.programmatic ? 0.29 : 0.69) + memory_latency_us);
    return launch_us + body_us + partials_us;
}

}  // namespace hone::rmsnorm_backward
