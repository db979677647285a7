#include "kernel_templates/attention_decode/rank.h"

#include <algorithm>
#include <cmath>

#include "kernel_templates/kit/clock.h"

namespace hone::attention_decode {
namespace {

/// Microseconds of `blocks` that run side by side, each with so many bytes of the cache, and warps' shares of
/// 16 tokens.
double round_us(double blocks, double block_bytes, double block_shares, const Cut& cut, const Stream& stream,
                const DeviceTraits& traits) {
    const double bytes = blocks * block_bytes;
    const double sms = std::min<double>(blocks, traits.sm_count);
    const double memory_us = bytes / (0.935e-6 * traits.memory_bytes_per_s) * stream.slowdown;
    constexpr double latency_us = 1.6;
    const double draw_us = block_bytes * latency_us / stream.in_flight_bytes;
    // What one multiprocessor takes in, whatever is in flight; and the instructions that its warps issue.
    const double port_us = bytes / (sms * 52e3);
    const double warps = cut.geometry.warps * blocks / sms;
    const double issued = sms * std::min(2.0, 0.25 * warps) * busy_cycles_per_us(traits);
    const double issue_us = blocks * block_shares * stream.instructions / issued;
    const double produce_us = block_shares * stream.producer_cycles / busy_cycles_per_us(traits);
    return std::pow(std::pow(memory_us, 4) + std::pow(draw_us, 4) + std::pow(port_us, 4) +
                        std::pow(issue_us, 4) + std::pow(produce_us, 4),
                    0.25);
}

}  // namespace

double predict_us(const DecodeProblem& p, const Cut& cut, const Stream& stream, const DeviceTraits& traits) {
    const Geometry& g = cut.geometry;
    const double count = static_cast<double>(blocks(p, cut, traits));
    // Clusters stand within a group of multiprocessors: large ones leave some of those empty.
    const double usable =
        (g.cluster > 2 ? 0.9 : 1.0) * traits.sm_count * static_cast<double>(cut.blocks_per_sm);
    const double resident = std::max(1.0, std::floor(usable / g.cluster)) * g.cluster;
    // Groups of rows read the same tokens again, mostly from level 2.
    const double block_bytes = cache_bytes(p) * (1.0 + 0.35 * (g.row_groups() - 1)) / count;
    const double block_shares =
        static_cast<double>(p.batch * ceil_div(p.tokens_seen(), 16)) * g.lists() / count;
    const double rounds = std::floor(count / resident);
    const double rest = count - rounds * resident;
    double body_us = rounds * round_us(resident, block_bytes, block_shares, cut, stream, traits);
    if (rest > 0) body_us += round_us(rest, block_bytes, block_shares, cut, stream, traits);
    const double meet_us = g.cluster > 1 ? 0.3 + 0.06 * g.cluster : cut.last_block ? 2.5 : 3.7;
    return body_us + stream.rest_us + meet_us;
}

}  // namespace hone::attention_decode
