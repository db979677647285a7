#include "kernel_templates/quantized_linear/ring/rank.h"

#include <algorithm>
#include <cmath>

#include "kernel_templates/kit/clock.h"
#include "kernel_templates/linear/normalize_rank.h"

namespace hone::quantized_linear {
namespace {

/// Cycles that a multiprocessor needs for 16 rows x 64 columns: of its four ports for instructions, of shared
/// memory's 128 bytes a cycle, and of the tensor cores, which mma.sync of so few tokens leaves half idle.
double block_cycles(const QuantizedProblem& p, const RingGeometry& g) {
    const double tokens = g.token_blocks();
    const double fragments = g.warp_rows / 16;
    const double widen = p.format == QuantFormat::w4a16 ? 4 * 11.0 : 4 * 14.0;
    const double group_ends = g.group == 0 ? 0.0 : std::max(1.0, 64.0 / g.group) * (8 + 4 * tokens);
    const double instructions = widen + 6 * tokens + group_ends + (20 + 4 * tokens) / fragments;
    const double shared_bytes = 2.2 * 128 * g.bits + tokens * 1024 / fragments;
    return std::max({instructions / 3.1, shared_bytes / 110, 4 * tokens / 0.34});
}

/// How often a block finds room on a multiprocessor. Registers are those that the compiler takes for a
/// compute warp with sums and codes; a stage that is one unit of each warp is unrolled.
double room(const RingGeometry& g, const RingConfig& c, const DeviceTraits& traits) {
    const std::int64_t fragments = g.warp_rows / 16;
    const std::int64_t sums = fragments * g.token_blocks() * (g.group != 0 ? 8 : 4);
    const std::int64_t taken =
        22 + sums + 6 * g.token_blocks() + 8 * fragments + (g.stage_units() == g.k_warps ? 6 : 0);
    const std::int64_t given = std::min(ceil_div(taken, 8) * 8, register_share(g, c));
    const std::int64_t warps = 4 * ceil_div(g.threads(), 128);
    const std::int64_t by_shared = traits.shared_bytes_per_sm / (g.shared_bytes() + 1024);
    return static_cast<double>(
        std::max(c.blocks_per_sm, std::min({traits.registers_per_sm / (given * 32 * warps), by_shared,
                                            traits.max_threads_per_sm / (32 * warps)})));
}

/// Where blocks stand.
struct Spread {
    double sms;       ///< that take part
    double room;      ///< blocks that fit a multiprocessor
    double busiest;   ///< blocks of the busiest multiprocessor
    double together;  ///< how many run at once
    double rounds;
    double ahead;  ///< share of the next call's blocks that find room beside this one's
};
Spread spread(const RingGeometry& g, const RingConfig& c, double count, const DeviceTraits& traits) {
    Spread s{};
    // Clusters of more than two do not find room on all of a chip: on 120 of an H100's 132.
    s.sms = g.cluster_k > 2 ? std::floor(0.91 * traits.sm_count) : traits.sm_count;
    s.room = room(g, c, traits);
    s.busiest = std::ceil(count / s.sms);
    s.together = std::min(s.busiest, s.room);
    s.rounds = std::ceil(count / (s.sms * s.room));
    if (c.programmatic == 0) return s;
    // Blocks that come while those of the call before still run double up where there is room, instead of
    // spreading evenly: often enough that six tenths of a block are expected.
    if (s.room > s.busiest) s.busiest += 0.6;
    s.ahead = std::clamp((s.sms * s.room - count) / count, 0.0, 0.6);
    return s;
}

/// Whatever is slowest of memory, the busiest multiprocessor's draw, what is under way in the rings, the
/// products, and level 2.
double body_us(const QuantizedProblem& p, const RingGeometry& g, const Spread& s, double count,
               double tile_count, const DeviceTraits& traits) {
    const double cycles_per_us = busy_cycles_per_us(traits);
    const double memory_us =
        (p.weight_bytes() + p.x_bytes() + p.out_bytes()) / (0.94e-6 * traits.memory_bytes_per_s);
    const double columns = static_cast<double>(g.most_units()) * g.unit_columns();
    const double weight_bytes = tile_count * g.most_units() * g.unit_bytes();
    // x that passes through the ring comes anew for each tile; tokens that do not exist are not read.
    const double x_bytes = g.x_streams ? tile_count * columns * 2 * static_cast<double>(p.tokens) : 0.0;
    // A multiprocessor takes in 50 KB/us of weights; x comes from near and counts half.
    const double draw_us = s.busiest * (weight_bytes + 0.5 * x_bytes) / 50e3;
    const double ring_bytes = static_cast<double>(g.stages) * g.stage_units() * g.unit_bytes();
    const double latency_us = 1.1 * s.busiest * weight_bytes / (s.together * ring_bytes);
    // Warps wait for products that follow each other: few of them do not fill the ports.
    const double chains =
        g.compute_warps() * s.together * std::min(4.0, g.warp_rows / 16.0 * g.token_blocks());
    const double pieces = tile_count * g.products * g.rows / 16.0 * columns / 64;
    const double compute_us =
        s.busiest * pieces * block_cycles(p, g) * std::max(1.0, 10 / chains) / cycles_per_us;
    const double level2_us = (p.weight_bytes() + count * x_bytes) / (6.5e6 * std::min(1.0, count / s.sms));
    double sum = 0;
    for (const double us : {memory_us, draw_us, latency_us, compute_us, level2_us}) sum += std::pow(us, 4);
    return std::pow(sum, 0.25);
}

}  // namespace

/// The body; the wait for x that stays; the way of the sums; and what programmatic launch does not hide.
/// Constants fitted to 3500 configs of 13 problems on an H100: errors of 4 to 8 %.
double predict(const QuantizedProblem& p, const RingConfig& c, const DeviceTraits& traits) {
    const RingGeometry g = geometry(p, c);
    const double cycles_per_us = busy_cycles_per_us(traits);
    const double count = static_cast<double>(blocks(p, c));
    const double tile_count = static_cast<double>(ceil_div(tiles(p, c), blocks(p, c) / c.cluster_k));
    const Spread s = spread(g, c, count, traits);

    const double kept_bytes = g.x_streams ? 0.0
                                          : static_cast<double>(g.most_units()) * g.unit_columns() * 2 *
                                                static_cast<double>(p.tokens);
    const double x_us = 0.6 * s.together * kept_bytes / 50e3;
    // Fragments are handed over one after another, and a cluster's blocks meet.
    const double exchange_us = 30.0 * g.fragments() * g.products * g.k_warps / cycles_per_us;
    const double cluster_us = g.cluster_k > 1 ? 0.45 : 0.0;
    // What x waits behind, and the first stage of a call that found no room before.
    const double fill_us = 0.0028 * std::max(0.0, 1e-3 * g.stages * g.stage_bytes() - 62);
    // A block's start and end are not hidden where the next one waits for its room.
    const double rounds_us = 3.7 * (s.rounds - 1) / s.room;
    const double launch_us = c.programmatic != 0 ? 0.8 + 1.3 * (1 - s.ahead) : 3.7;
    return body_us(p, g, s, count, tile_count, traits) + x_us + exchange_us + cluster_us + fill_us +
           rounds_us + 0.13 * (tile_count - 1) + launch_us + linear::normalize_us(p.dense(), traits);
}

}  // namespace hone::quantized_linear
