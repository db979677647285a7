#include <algorithm>
#include <cmath>
#include <vector>

#include "kernel_templates/quantized_linear/mma/geometry.cuh"
#include "kernel_templates/quantized_linear/quantize.h"
#include "kernel_templates/space.h"

namespace hone::quantized_linear {
namespace {

using mma_blocks::Geometry;
using mma_blocks::panel;

enum Index : std::size_t { block_tokens, rows, k_warps, row_warps, unroll, programmatic };

constexpr Tunable tunables[] = {
    {"tokens", "of a block", {8, 16, 32, 64, 128}},
    {"rows", "of the weight that a warp multiplies together", {16, 32, 64}},
    {"k_warps", "warps that share a row", {1, 2, 4, 8}},
    {"row_warps", "groups of them in a block", {1, 2, 4, 8}},
    {"unroll", "panels of 64 columns that a warp keeps in flight", {1, 2, 4}},
    {"programmatic", "1: programmatic dependent launch", {0, 1}},
};

Geometry geometry(const QuantizedProblem& p, const Config& config) {
    return {.tokens = static_cast<int>(config[block_tokens]),
            .rows = static_cast<int>(config[rows]),
            .k_warps = static_cast<int>(config[k_warps]),
            .row_warps = static_cast<int>(config[row_warps]),
            .unroll = static_cast<int>(config[unroll]),
            .products = static_cast<int>(p.products()),
            .x_bytes = p.is_packed() ? 2 : 1,
            .blocks_scaled = p.format == Format::fp8 && p.group != 0};
}

/// Loads of 16 bytes that a thread has under way.
std::int64_t loads(const QuantizedProblem& p, const Config& config) {
    return config[unroll] * p.products() * config[rows] / 16 * (p.bits() == 4 ? 1 : 2);
}
/// Two batches of weights, each load with its scale and zero points; sums; what one step takes; and
/// addresses, for fp8 also what is not yet scaled, or widened.
std::int64_t registers(const QuantizedProblem& p, const Config& config) {
    const std::int64_t blocks = p.products() * config[rows] / 16;
    const std::int64_t scales = p.format == Format::w4a16 && p.group != 0 ? (p.group == 32 ? 2 : 1) : 0;
    const std::int64_t batch = 4 * loads(p, config) + config[unroll] * blocks * scales * (p.zeros ? 2 : 1);
    const std::int64_t sums = blocks * config[block_tokens] / 8 * 4;
    const std::int64_t rest = p.format != Format::fp8 ? 40 : p.group == 0 ? 72 : 104;
    return 2 * batch + sums + blocks * (p.is_packed() ? 8 : 4) + rest;
}

std::int64_t groups(const QuantizedProblem& p, const Config& config) {
    return ceil_div(p.tokens, config[block_tokens]);
}
std::int64_t steps(const QuantizedProblem& p, const Config& config) {
    return ceil_div(p.out, config[rows] * config[row_warps]);
}

/// The least that holds all, or 64 and 128.
bool holds_tokens(const QuantizedProblem& p, const Config& config) {
    if (p.tokens > 64) return config[block_tokens] >= 64;
    return config[block_tokens] >= p.tokens &&
           (config[block_tokens] == 8 || config[block_tokens] < 2 * p.tokens);
}

constexpr Constraint constraints[] = {
    {"products of bf16 need sm_80",
     [](const Problem& problem, const Config&, const DeviceTraits& t) {
         const QuantizedProblem p = quantized_problem(problem);
         return t.compute_major >= 8 || !p.is_packed() || p.dtype == Dtype::fp16;
     }},
    {"rows of x and of codes are whole accesses of 16 bytes: in is a multiple of 16",
     [](const Problem& p, const Config&, const DeviceTraits&) { return quantized_problem(p).in % 16 == 0; }},
    {"32 bits hold a warp's sums of int8 products: in is below 131072",
     [](const Problem& p, const Config&, const DeviceTraits&) {
         return quantized_problem(p).format != Format::w8a8 || quantized_problem(p).in < 131072;
     }},
    {"a block holds all tokens, up to 64; more are shared by blocks of 64 or 128",
     [](const Problem& p, const Config& c, const DeviceTraits&) {
         return holds_tokens(quantized_problem(p), c);
     }},
    {"blocks have 4 to 16 warps",
     [](const Problem&, const Config& c, const DeviceTraits&) {
         return c[k_warps] * c[row_warps] >= 4 && c[k_warps] * c[row_warps] <= 16;
     }},
    {"a thread keeps two to sixteen loads in flight",
     [](const Problem& p, const Config& c, const DeviceTraits&) {
         return loads(quantized_problem(p), c) >= 2 && loads(quantized_problem(p), c) <= 16;
     }},
    {"batches are whole blocks of 128 columns where these have scales",
     [](const Problem& p, const Config& c, const DeviceTraits&) {
         const Geometry g = geometry(quantized_problem(p), c);
         return !g.blocks_scaled || g.panels() % 2 == 0;
     }},
    {"warps that share a row must all have columns",
     [](const Problem& p, const Config& c, const DeviceTraits&) {
         return c[k_warps] <= 2 || (c[k_warps] - 1) * c[unroll] * panel < quantized_problem(p).in;
     }},
    {"warps must all have rows, except one group of 16",
     [](const Problem& p, const Config& c, const DeviceTraits&) {
         const std::int64_t out = quantized_problem(p).out;
         return (c[rows] == 16 || c[rows] / 2 < out) &&
                (c[row_warps] == 1 || (c[row_warps] - 1) * c[rows] < out);
     }},
    {"loads and sums must fit a thread's registers",
     [](const Problem& p, const Config& c, const DeviceTraits&) {
         const std::int64_t threads = geometry(quantized_problem(p), c).threads();
         return registers(quantized_problem(p), c) <= std::min<std::int64_t>(216, 65536 / threads);
     }},
    {"two batches of x and the warps' sums must fit shared memory",
     [](const Problem& p, const Config& c, const DeviceTraits& t) {
         return geometry(quantized_problem(p), c).shared_bytes() <= t.max_shared_bytes_per_block;
     }},
    linear::programmatic_needs_sm_90<programmatic>,
};

Plan plan(const Problem& problem, const Config& config, const DeviceTraits&) {
    const QuantizedProblem p = quantized_problem(problem);
    const Geometry g = geometry(p, config);
    const std::int64_t blocks = steps(p, config) * groups(p, config);
    Plan plan{.launch_count = 1};
    plan.launches[0] =
        launch("quantized_linear_mma", {static_cast<std::uint32_t>(blocks), 1, 1}, g.threads());
    plan.launches[0].shared_bytes = static_cast<std::uint32_t>(g.shared_bytes());
    plan.launches[0].programmatic = config[programmatic] != 0;
    return prepare_first(p, plan);
}

/// Issue slots of a warp for 16 bytes of codes a lane: to widen and scale them, to fetch x, to multiply,
/// which takes the tensor cores as long as five others.
double slots(const QuantizedProblem& p, const Config& config) {
    const double token_blocks = static_cast<double>(config[block_tokens]) / 8;
    const double sharers = static_cast<double>(p.products() * config[rows]) / 16;
    switch (p.format) {
        case Format::w4a16: return 10 + (p.group == 0 ? 44.0 : 60.0) + token_blocks * (20 + 8 / sharers);
        case Format::w8a16: return 10 + 24 + token_blocks * (10 + 4 / sharers);
        case Format::w8a8: return 10 + token_blocks * (5 + 2 / sharers);
        default: return 10 + token_blocks * ((p.group == 0 ? 6.0 : 12.0) + 4 / sharers);
    }
}

/// Blocks that fit a multiprocessor.
double fitting(const QuantizedProblem& p, const Config& config, const DeviceTraits& traits) {
    const Geometry g = geometry(p, config);
    const double used = static_cast<double>(registers(p, config));
    return std::max(
        1.0,
        std::floor(std::min({65536 / (used * g.threads()),
                             static_cast<double>(traits.shared_bytes_per_sm) / (g.shared_bytes() + 1024.0),
                             static_cast<double>(traits.max_threads_per_sm) / g.threads()})));
}

/// The weights over the bandwidth, over what the loads in flight can draw, over issue slots and, with x, over
/// level 2, joined by a soft maximum and rounded up to whole waves of blocks; plus what a launch costs.
double predict(const Problem& problem, const Config& config, const DeviceTraits& traits) {
    const QuantizedProblem p = quantized_problem(problem);
    const Geometry g = geometry(p, config);
    const double blocks = static_cast<double>(steps(p, config) * groups(p, config));
    const double resident = std::min(fitting(p, config, traits), std::ceil(blocks / traits.sm_count));
    const double busy = std::min<double>(traits.sm_count, blocks);
    const double waves = blocks / (resident * traits.sm_count);
    const double uneven = waves <= 1 ? 1.0 : std::min(1.25, std::ceil(waves) / waves);

    const double weights = p.weight_bytes() * static_cast<double>(groups(p, config));  // through level 2
    const double x = blocks * static_cast<double>(config[block_tokens] * p.in) * g.x_bytes;
    const double cycles_per_us = 0.886e-3 * traits.sm_clock_khz;
    const double memory_us =
        (p.weight_bytes() + p.x_bytes() + p.out_bytes()) / (0.88e-6 * traits.memory_bytes_per_s);
    const double in_flight = resident * g.threads() * static_cast<double>(loads(p, config)) * 16;
    const double draw_us = weights / busy / in_flight * 1.2;
    const double issue_us = weights / 16 * slots(p, config) / (busy * 128 * cycles_per_us);
    const double level2_us = (weights + x) / (busy * 32 * cycles_per_us);
    const double body_us = std::pow(
        std::pow(memory_us, 4) + std::pow(draw_us, 4) + std::pow(issue_us, 4) + std::pow(level2_us, 4), 0.25);
    const double join_us = 0.4 + 0.1 * static_cast<double>(config[block_tokens]) / 8;
    return body_us * uneven + join_us + prepare_us(p, traits) + (config[programmatic] != 0 ? 1.4 : 1.8);
}

/// The best by the cost model of a few shapes of blocks.
std::optional<Config> fallback(const Problem& problem, const DeviceTraits& traits) {
    struct Shape {
        std::int64_t rows, k_warps, row_warps;
    };
    constexpr Shape shapes[] = {{16, 4, 1}, {16, 8, 1}, {16, 4, 2}, {16, 4, 4}, {32, 4, 1},
                                {32, 4, 2}, {32, 2, 4}, {32, 1, 8}, {64, 2, 2}, {64, 1, 4}};
    std::vector<Config> starts;
    for (const Shape& shape : shapes) {
        Config& config = starts.emplace_back();
        config[rows] = shape.rows;
        config[k_warps] = shape.k_warps;
        config[row_warps] = shape.row_warps;
        config[programmatic] = traits.has_programmatic_launch() ? 1 : 0;
    }
    const std::vector<Config> configs = combinations(starts, tunables, {block_tokens, unroll});
    return best_of(problem, mma, configs, traits);
}

}  // namespace

const Variant mma{.name = "mma",
                  .summary =
                      "weights stream through registers into warp-level tensor cores, x through shared "
                      "memory",
                  .source = "quantized_linear/mma/kernel.cu",
                  .tunables = tunables,
                  .constraints = constraints,
                  .plan = plan,
                  .fallback = fallback,
                  .access_elements = [](const Problem&, const Config&) { return std::int64_t{16}; },
                  .predict_us = predict};

}  // namespace hone::quantized_linear
