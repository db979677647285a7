#include "kernel_templates/linear/plain_product_rules.h"

#include <algorithm>
#include <cmath>

#include "kernel_templates/kit/clock.h"

namespace hone::linear::plain_product {

std::int64_t shared_bytes(const LinearProblem& p, const PlainConfig& c) {
    return 2 * 4 * c.tile_in * (c.tile_tokens + 4 + p.products() * (c.tile_out + 4));
}

std::int64_t held_registers(const Operands& operands, const PlainConfig& c) {
    const std::int64_t products = operands.product.products();
    const std::int64_t sums = products * c.thread_tokens * c.thread_out;
    const std::int64_t x_loads = ceil_div(c.tile_tokens * c.tile_in, c.vector * c.threads());
    const std::int64_t weight_loads =
        products * ceil_div(c.tile_out * c.tile_in, operands.weights_a_load * c.threads());
    return sums + 2 * (c.thread_tokens + c.thread_out) + x_loads * operands.x_registers +
           weight_loads * operands.weight_registers;
}

namespace {

/// Blocks that a multiprocessor holds at a time.
double resident_blocks(const Operands& operands, const PlainConfig& c, const DeviceTraits& traits) {
    const double block_threads = static_cast<double>(c.threads());
    const double registers = static_cast<double>(held_registers(operands, c)) + 40;
    return std::clamp(std::floor(std::min({65536 / (registers * block_threads),
                                           static_cast<double>(traits.shared_bytes_per_sm) /
                                               static_cast<double>(shared_bytes(operands.product, c) + 1024),
                                           traits.max_threads_per_sm / block_threads})),
                      1.0, 16.0);
}

/// Cycles of one step of `together` blocks that share a multiprocessor: products on 128 lanes, which also
/// read their numbers from shared memory, 128 bytes a cycle; and the stores there.
double step_cycles(const Operands& operands, const PlainConfig& c, double together) {
    const double block_threads = static_cast<double>(c.threads());
    const double tt = static_cast<double>(c.thread_tokens);
    const double to = static_cast<double>(c.thread_out);
    const double products = static_cast<double>(operands.product.products());
    const double columns = static_cast<double>(c.tile_in);
    const double multiply = block_threads * columns * tt * to * products / 128;
    const double reads = block_threads * columns * (tt / 4 + to * products) * 4 / 128;
    const double staged = columns *
                          static_cast<double>(c.tile_tokens + operands.product.products() * c.tile_out) *
                          operands.stage_operations / 128;
    return std::max(together * (std::max(multiply, reads) + staged), 700.0);
}

}  // namespace

double predict_us(const Operands& operands, const PlainConfig& c, const DeviceTraits& traits) {
    const double resident = resident_blocks(operands, c, traits);
    const double all = static_cast<double>(blocks(operands.product, c));
    const double waves = std::ceil(all / (traits.sm_count * resident));
    const double together = std::min(resident, std::ceil(all / traits.sm_count));
    const double steps = std::ceil(static_cast<double>(operands.product.in) / static_cast<double>(c.tile_in));
    const double cycles = waves * steps * step_cycles(operands, c, together);
    const double compute_us = cycles / busy_cycles_per_us(traits);
    const double memory_us = operands.bytes / (0.85e-6 * traits.memory_bytes_per_s);
    return 3.0 + std::max(compute_us, memory_us);
}

PlainConfig fallback_config(const LinearProblem& p, const DeviceTraits& traits) {
    PlainConfig c;
    c.tile_tokens = p.tokens > 32 ? 64 : 16;
    c.tile_out = 64;
    c.tile_in = 16;
    c.thread_tokens = p.tokens > 32 ? 4 : 2;
    c.thread_out = 4;
    c.vector = p.in % 4 == 0 ? 4 : 1;
    c.programmatic = traits.has_programmatic_launch() ? 1 : 0;
    return c;
}

}  // namespace hone::linear::plain_product
