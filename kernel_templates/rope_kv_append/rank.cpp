#include "kernel_templates/rope_kv_append/rank.h"

#include <algorithm>
#include <cmath>

#include "kernel_templates/kit/clock.h"
#include "kernel_templates/kit/work.h"

namespace hone::rope_kv_append {

double predict_us(const Problem& problem, const Footprint& footprint, const DeviceTraits& traits) {
    const double lanes_per_us = 128 * busy_cycles_per_us(traits);
    const double sms = std::min<double>(traits.sm_count, std::ceil(footprint.threads / 128));
    const double issue_us = footprint.threads * footprint.instructions / (sms * lanes_per_us);
    const double bandwidth = 0.86e-6 * traits.memory_bytes_per_s / footprint.slowdown;
    const double memory_us = bytes_of(declared_arguments(problem)) / bandwidth;
    constexpr double sharpness = 2.5;
    const double body_us =
        std::pow(std::pow(memory_us, sharpness) + std::pow(issue_us, sharpness), 1 / sharpness);
    const double launch_us = footprint.programmatic ? 0.29 : 0.69;
    return launch_us + footprint.latency_us + body_us;
}

}  // namespace hone::rope_kv_append
