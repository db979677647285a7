#include "kernel_templates/linear/plain_product.h"

#include <algorithm>
#include <cmath>

namespace hone::linear::plain_product {

std::int64_t threads(const Config& config) {
    return config[tile_tokens] / config[thread_tokens] * (config[tile_out] / config[thread_out]);
}

std::int64_t blocks(const LinearProblem& p, const Config& config) {
    return ceil_div(p.tokens, config[tile_tokens]) * ceil_div(p.out, config[tile_out]);
}

std::int64_t shared_bytes(const LinearProblem& p, const Config& config) {
    return 2 * 4 * config[tile_in] * (config[tile_tokens] + 4 + p.products() * (config[tile_out] + 4));
}

std::int64_t held_registers(const Operands& of, const Config& config) {
    const std::int64_t products = of.product.products();
    const std::int64_t sums = products * config[thread_tokens] * config[thread_out];
    const std::int64_t x_loads =
        ceil_div(config[tile_tokens] * config[tile_in], config[vector] * threads(config));
    const std::int64_t weight_loads =
        products * ceil_div(config[tile_out] * config[tile_in], of.weights_a_load * threads(config));
    return sums + 2 * (config[thread_tokens] + config[thread_out]) + x_loads * of.x_registers +
           weight_loads * of.weight_registers;
}

namespace {

/// Blocks that a multiprocessor holds at a time.
double resident_blocks(const Operands& of, const Config& config, const DeviceTraits& traits) {
    const double block_threads = static_cast<double>(threads(config));
    const double registers = static_cast<double>(held_registers(of, config)) + 40;
    return std::clamp(std::floor(std::min({65536 / (registers * block_threads),
                                           static_cast<double>(traits.shared_bytes_per_sm) /
                                               static_cast<double>(shared_bytes(of.product, config) + 1024),
                                           traits.max_threads_per_sm / block_threads})),
                      1.0, 16.0);
}

/// Cycles of one step of `together` blocks that share a multiprocessor: products on 128 lanes, which also
/// read their numbers from shared memory, 128 bytes a cycle; and the stores there.
double step_cycles(const Operands& of, const Config& config, double together) {
    const double block_threads = static_cast<double>(threads(config));
    const double tt = static_cast<double>(config[thread_tokens]);
    const double to = static_cast<double>(config[thread_out]);
    const double products = static_cast<double>(of.product.products());
    const double columns = static_cast<double>(config[tile_in]);
    const double multiply = block_threads * columns * tt * to * products / 128;
    const double reads = block_threads * columns * (tt / 4 + to * products) * 4 / 128;
    const double staged =
        columns * static_cast<double>(config[tile_tokens] + of.product.products() * config[tile_out]) *
        of.stage_operations / 128;
    return std::max(together * (std::max(multiply, reads) + staged), 700.0);
}

}  // namespace

double predict_us(const Operands& of, const Config& config, const DeviceTraits& traits) {
    const double resident = resident_blocks(of, config, traits);
    const double all = static_cast<double>(blocks(of.product, config));
    const double waves = std::ceil(all / (traits.sm_count * resident));
    const double together = std::min(resident, std::ceil(all / traits.sm_count));
    const double steps = std::ceil(static_cast<double>(of.product.in) / static_cast<double>(config[tile_in]));
    const double cycles = waves * steps * step_cycles(of, config, together);
    const double compute_us = cycles / (0.886e-3 * traits.sm_clock_khz);
    const double memory_us = of.bytes / (0.85e-6 * traits.memory_bytes_per_s);
    return 3.0 + std::max(compute_us, memory_us);
}

Config fallback_config(const LinearProblem& p, const DeviceTraits& traits) {
    Config config;
    config[tile_tokens] = p.tokens > 32 ? 64 : 16;
    config[tile_out] = 64;
    config[tile_in] = 16;
    config[thread_tokens] = p.tokens > 32 ? 4 : 2;
    config[thread_out] = 4;
    config[vector] = p.in % 4 == 0 ? 4 : 1;
    config[programmatic] = traits.has_programmatic_launch() ? 1 : 0;
    return config;
}

}  // namespace hone::linear::plain_product
