#include "kernel_templates/attention_decode/rank.h"

#include <algorithm>
#include <cmath>

#include "kernel_templates/kit/clock.h"

namespace hone::attention_decode {
namespace {

constexpr double memory_share = 0.93;        // of its bandwidth, for a stream
constexpr double latency_us = 0.95;         // of a load from memory beside many others
constexpr double port_bytes_per_us = 93e3;  // what a multiprocessor takes in
constexpr double softness = 6;              // the slowest of several decides, others add little
constexpr double cluster_room = 0.95;       // of the multiprocessors, for clusters of more than two blocks
constexpr double cluster_meet_us = 0.3;
constexpr double cluster_block_meet_us = 0.1;
constexpr double memory_meet_us = 4.3;  // of pieces by way of the workspace, whoever joins them

/// Blocks that run side by side, on so many multiprocessors.
struct Round {
    double blocks = 0;
    double sms = 0;
    double block_bytes = 0;   ///< of the cache, of one of them
    double block_shares = 0;  ///< warps' shares of 16 tokens, of one of them
};

/// Its microseconds.
double round_us(const Round& round, const Cut& cut, const Stream& stream, const DeviceTraits& traits) {
    const double cycles_per_us = busy_cycles_per_us(traits);
    const double bytes = round.blocks * round.block_bytes;
    const double memory_us = bytes / (memory_share * 1e-6 * traits.memory_bytes_per_s) * stream.slowdown;
    const double draw_us = round.block_bytes * latency_us / stream.in_flight_bytes;
    // What the multiprocessor with the most blocks takes in, whatever is in flight, and the instructions that
    // its warps issue. Clusters are placed as a whole: 32 of 4 on room for 31 give four multiprocessors two.
    const double cluster = cut.geometry.cluster;
    const double side_by_side = std::max(1.0, std::floor(round.sms / cluster));
    const double fullest =
        std::max(std::ceil(round.blocks / cluster / side_by_side), round.blocks / round.sms);
    const double port_us = fullest * round.block_bytes / port_bytes_per_us;
    const double issued = std::min(2.0, 0.25 * cut.geometry.warps * fullest) * cycles_per_us;
    const double issue_us = fullest * round.block_shares * stream.instructions / issued;
    const double produce_us = round.block_shares * stream.producer_cycles / cycles_per_us;
    double sum = 0;
    for (const double us : {memory_us, draw_us, port_us, issue_us, produce_us}) sum += std::pow(us, softness);
    return std::pow(sum, 1 / softness);
}

}  // namespace

double predict_us(const DecodeProblem& p, const Cut& cut, const Stream& stream, const DeviceTraits& traits) {
    const Geometry& g = cut.geometry;
    const double count = static_cast<double>(blocks(p, cut, traits));
    // Clusters stand within a group of multiprocessors: large ones leave some of those empty.
    const double sms = (g.cluster > 2 ? cluster_room : 1.0) * traits.sm_count;
    const double places = std::max(static_cast<double>(cut.blocks_per_sm), stream.blocks_that_fit);
    const double resident = std::max(1.0, std::floor(sms * places / g.cluster)) * g.cluster;
    Round round{
        .blocks = resident,
        .sms = sms,
        // Groups of rows read the same tokens again, mostly from level 2.
        .block_bytes = cache_bytes(p) * (1.0 + 0.35 * (g.row_groups() - 1)) / count,
        .block_shares = static_cast<double>(p.batch * ceil_div(p.tokens_seen(), 16)) * g.lists() / count};
    const double rounds = std::floor(count / resident);
    double body_us = rounds == 0 ? 0.0 : rounds * round_us(round, cut, stream, traits);
    round.blocks = count - rounds * resident;
    if (round.blocks > 0) body_us += round_us(round, cut, stream, traits);
    const double meet_us =
        g.cluster > 1 ? cluster_meet_us + cluster_block_meet_us * g.cluster : memory_meet_us;
    return body_us + stream.rest_us + meet_us;
}

}  // namespace hone::attention_decode
