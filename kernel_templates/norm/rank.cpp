#include "kernel_templates/norm/rank.h"

#include <algorithm>
#include <cmath>

#include "kernel_templates/kit/clock.h"

namespace hone::norm {

double work_factor(const NormProblem& problem) {
    return (1.0 + (problem.residual ? 0.4 : 0.0) + (problem.quantized() ? 0.5 : 0.0)) *
           (problem.layernorm ? 1.3 : 1.0);
}

namespace {

/// Bytes that a call has to move.
double call_bytes(const NormProblem& norm) {
    const double row = static_cast<double>(norm.read_bytes() + norm.hidden * size_bytes(norm.out_dtype()) +
                                           (norm.residual ? norm.hidden * norm.element_bytes() : 0) +
                                           (norm.quantized() ? 4 : 0));
    const std::int64_t parameters = norm.hidden * norm.element_bytes() * (norm.bias ? 2 : 1);
    return static_cast<double>(norm.rows) * row + static_cast<double>(parameters);
}

double share_of_l2(const NormProblem& norm, const DeviceTraits& traits) {
    return call_bytes(norm) / static_cast<double>(traits.l2_bytes);
}

}  // namespace

bool bound_by_memory(const NormProblem& norm, const DeviceTraits& traits) {
    return share_of_l2(norm, traits) > 2.0;
}

bool fills_half_of_l2(const NormProblem& norm, const DeviceTraits& traits) {
    return share_of_l2(norm, traits) > 0.5;
}

bool exceeds_l2(const NormProblem& norm, const DeviceTraits& traits) {
    return share_of_l2(norm, traits) > 1.0;
}

bool is_for_clusters(const NormProblem& norm, const DeviceTraits& traits) {
    constexpr std::int64_t least_bytes = 14 * 1024;
    return traits.compute_major >= 9 && !norm.quantized() && norm.read_bytes() >= least_bytes &&
           norm.rows * blocks_of_few_rows <= traits.sm_count;
}

double memory_factor(const NormProblem& norm, const MemoryShape& shape, const DeviceTraits& traits) {
    if (!bound_by_memory(norm, traits)) return 1.0;
    const double long_shares = std::max(0.0, std::log2(shape.bytes_per_thread / 64));
    const double neighbours = std::min(4.0, std::log2(shape.rows_per_block));
    return (1 + 0.015 * long_shares) * (1 + 0.004 * neighbours) * (1 + 0.004 * (shape.rows_in_flight - 1));
}

double hint_factor(const NormProblem& norm, bool streaming_loads, bool streaming_stores,
                   const DeviceTraits& traits) {
    const double share = share_of_l2(norm, traits);
    const double each = share > 0.03 && share < 2.0 ? 0.98 : share < 4.0 ? 1.0 : 1.012;
    return (streaming_loads ? each : 1.0) * (streaming_stores ? each : 1.0);
}

double level_2_factor(const NormProblem& norm, std::int64_t load_hint, const DeviceTraits& traits) {
    const double share = share_of_l2(norm, traits);
    if (load_hint == first_to_leave)
        return share < 0.4 ? 0.985 : share < 1.5 ? 0.94 : share < 4.0 ? 1.0 : 1.05;
    if (load_hint == last_to_leave) return share < 1.5 ? 1.03 : share < 4.0 ? 1.0 : 0.97;
    return 1.0;
}

namespace {

/// Blocks of this footprint that run side by side on one multiprocessor.
double resident_blocks(const Footprint& footprint, const DeviceTraits& traits) {
    constexpr std::int64_t other_registers = 20;
    const std::int64_t register_limit =
        std::min<std::int64_t>(255, traits.registers_per_sm / footprint.threads);
    const std::int64_t registers = std::min(footprint.held_registers + other_registers, register_limit);
    const std::int64_t reserved_shared = footprint.shared_bytes + 2048;
    return static_cast<double>(std::min({std::int64_t{traits.max_blocks_per_sm}, footprint.blocks_per_sm,
                                         traits.max_threads_per_sm / footprint.threads,
                                         traits.registers_per_sm / (registers * footprint.threads),
                                         traits.shared_bytes_per_sm / reserved_shared}));
}

}  // namespace

double predict_us(const NormProblem& norm, const Footprint& footprint, const DeviceTraits& traits) {
    const double resident = resident_blocks(footprint, traits);
    if (resident < 1) return 1e7;
    const double blocks = static_cast<double>(footprint.blocks);
    const double sms = std::min<double>(traits.sm_count, blocks);
    const double active = std::min(resident, std::ceil(blocks / traits.sm_count));

    const double across_warps_us =
        footprint.reducing_warps > 0 ? 0.049 + 0.0003 * footprint.reducing_warps : 0.0;
    const double latency_us = 0.0042 * footprint.elements +
                              0.059 / 1024 * static_cast<double>(footprint.threads) +
                              across_warps_us * norm.reductions() + footprint.latency_us;

    constexpr double memory_latency_us = 0.33;
    const double bandwidth_us = call_bytes(norm) / (0.884 * traits.memory_bytes_per_s * 1e-6);
    const double read_bytes = static_cast<double>(norm.rows * norm.read_bytes());
    const double cycle_us = memory_latency_us + (footprint.loads_ahead ? 0.0 : 0.05 + latency_us);
    const double draw_us = read_bytes * cycle_us / (sms * active * footprint.bytes_in_flight);

    const double instructions =
        15 + 10.2 * footprint.elements * footprint.work_factor + footprint.reducing_warps;
    const double threads = blocks * static_cast<double>(footprint.threads) * footprint.rounds;
    const double lanes_per_us = 128 * busy_cycles_per_us(traits);
    const double issue_us = threads / sms * instructions / lanes_per_us;

    const double sharpness = bound_by_memory(norm, traits) ? 2.5 : 1.78;
    const double body_us = std::pow(
        std::pow(bandwidth_us, sharpness) + std::pow(draw_us, sharpness) + std::pow(issue_us, sharpness),
        1.0 / sharpness);
    const double launch_us = footprint.programmatic ? 0.29 : 0.69;
    return (launch_us + memory_latency_us + latency_us + body_us) * footprint.slowdown;
}

}  // namespace hone::norm
