#include <algorithm>
#include <cmath>

#include "kernel_templates/quantized_linear/quantise.h"

namespace hone::quantized_linear {
namespace {

enum Index : std::size_t { tile_tokens, tile_out, thread_tokens, thread_out, vector, programmatic };

constexpr Tunable tunables[] = {
    {"tile_tokens", "tokens of a block", {16, 64, 128}},
    {"tile_out", "results a token of a block", {64, 128}},
    {"thread_tokens", "tokens of a thread", {2, 4, 8}},
    {"thread_out", "results a token of a thread", {4, 8}},
    {"vector", "elements or bytes a load", {1, 4}},
    {"programmatic", "1: programmatic dependent launch", {0, 1}},
};

constexpr std::int64_t tile_in = 16;  // as in plain.cu

std::int64_t threads(const Config& config) {
    return config[tile_tokens] / config[thread_tokens] * (config[tile_out] / config[thread_out]);
}

/// Two buffers of floats, as in plain.cu.
std::int64_t shared_bytes(const QuantizedProblem& p, const Config& config) {
    return 2 * 4 * tile_in * (config[tile_tokens] + 4 + p.products() * (config[tile_out] + 4));
}

/// Sums, the numbers of one column, and packets with their scales on their way to shared memory.
std::int64_t held_registers(const QuantizedProblem& p, const Config& config) {
    const std::int64_t sums = p.products() * config[thread_tokens] * config[thread_out];
    const std::int64_t codes_a_packet = config[vector] * (p.bits() == 4 ? 2 : 1);
    const std::int64_t x_packets = ceil_div(config[tile_tokens] * tile_in, config[vector] * threads(config));
    const std::int64_t weight_packets =
        p.products() * ceil_div(config[tile_out] * tile_in, codes_a_packet * threads(config));
    return sums + 2 * (config[thread_tokens] + config[thread_out]) + 3 * x_packets +
           weight_packets * (p.zeros ? 5 : 3);
}

std::int64_t tiles(const QuantizedProblem& p, const Config& config) {
    return ceil_div(p.tokens, config[tile_tokens]) * ceil_div(p.out, config[tile_out]);
}

constexpr Constraint constraints[] = {
    {"blocks have 64 to 256 threads",
     [](const Problem&, const Config& c, const DeviceTraits&) {
         return threads(c) >= 64 && threads(c) <= 256;
     }},
    {"loads are as wide as the rows allow",
     [](const Problem& p, const Config& c, const DeviceTraits&) {
         return (quantized_problem(p).in % 4 == 0) == (c[vector] == 4);
     }},
    {"tiles of more than 16 tokens are for problems that have more",
     [](const Problem& p, const Config& c, const DeviceTraits&) {
         return c[tile_tokens] == 16 || c[tile_tokens] < 2 * quantized_problem(p).tokens;
     }},
    {"a thread's sums and the codes on their way must fit its registers",
     [](const Problem& p, const Config& c, const DeviceTraits&) {
         return held_registers(quantized_problem(p), c) <= 150;
     }},
    {"the two buffers must fit 48 KiB",
     [](const Problem& p, const Config& c, const DeviceTraits&) {
         return shared_bytes(quantized_problem(p), c) <= 48 * 1024;
     }},
    linear::programmatic_needs_sm_90<programmatic>,
};

Plan plan(const Problem& problem, const Config& config, const DeviceTraits&) {
    const QuantizedProblem p = quantized_problem(problem);
    Plan plan{.launch_count = 1};
    plan.launches[0] = launch("quantized_linear_plain", {static_cast<std::uint32_t>(tiles(p, config)), 1, 1},
                              threads(config));
    plan.launches[0].programmatic = config[programmatic] != 0;
    return prepare_first(p, plan);
}

/// Waves of blocks, each bound by the arithmetic of its step or by the latency of the loads for the next one;
/// and the memory.
double predict(const Problem& problem, const Config& config, const DeviceTraits& traits) {
    const QuantizedProblem p = quantized_problem(problem);
    const double block_threads = static_cast<double>(threads(config));
    const double registers = static_cast<double>(held_registers(p, config)) + 40;
    const double resident =
        std::clamp(std::floor(std::min({65536 / (registers * block_threads),
                                        static_cast<double>(traits.shared_bytes_per_sm) /
                                            static_cast<double>(shared_bytes(p, config) + 1024),
                                        traits.max_threads_per_sm / block_threads})),
                   1.0, 16.0);
    const double blocks = static_cast<double>(tiles(p, config));
    const double waves = std::ceil(blocks / (traits.sm_count * resident));
    const double together = std::min(resident, std::ceil(blocks / traits.sm_count));

    // Cycles of one step of the blocks that share a multiprocessor: products on 128 lanes, which also read
    // their numbers from shared memory, 128 bytes a cycle; decoding and stores on the way there.
    const double tt = static_cast<double>(config[thread_tokens]);
    const double to = static_cast<double>(config[thread_out]);
    const double products = static_cast<double>(p.products());
    const double columns = static_cast<double>(tile_in);
    const double multiply = block_threads * columns * tt * to * products / 128;
    const double reads = block_threads * columns * (tt / 4 + to * products) * 4 / 128;
    const double staged = columns *
                          static_cast<double>(config[tile_tokens] + p.products() * config[tile_out]) *
                          (config[vector] == 1 ? 16.0 : 6.0) / 128;
    const double step = std::max(together * (std::max(multiply, reads) + staged), 700.0);
    const double cycles = waves * std::ceil(static_cast<double>(p.in) / columns) * step;
    const double compute_us = cycles / (0.886e-3 * traits.sm_clock_khz);
    const double memory_us =
        (p.weight_bytes() + p.x_bytes() + p.out_bytes()) / (0.85e-6 * traits.memory_bytes_per_s);
    return 3.0 + std::max(compute_us, memory_us) + prepare_us(p, traits);
}

std::optional<Config> fallback(const Problem& problem, const DeviceTraits& traits) {
    const QuantizedProblem p = quantized_problem(problem);
    Config config;
    config[tile_tokens] = p.tokens > 32 ? 64 : 16;
    config[tile_out] = 64;
    config[thread_tokens] = p.tokens > 32 ? 4 : 2;
    config[thread_out] = 4;
    config[vector] = p.in % 4 == 0 ? 4 : 1;
    config[programmatic] = traits.has_programmatic_launch() ? 1 : 0;
    return config;
}

}  // namespace

const Variant plain{.name = "plain",
                    .summary = "tiles in shared memory, products on the CUDA cores: any size on any chip",
                    .source = "quantized_linear/plain.cu",
                    .tunables = tunables,
                    .constraints = constraints,
                    .plan = plan,
                    .fallback = fallback,
                    .access_elements = [](const Problem&, const Config& config) { return config[vector]; },
                    .predict_us = predict};

}  // namespace hone::quantized_linear
