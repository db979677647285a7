#include <algorithm>
#include <optional>
#include <vector>

#include "kernel_templates/attention_decode/rank.h"
#include "kernel_templates/attention_decode/ring/tunables.h"
#include "kernel_templates/attention_decode/rules.h"
#include "kernel_templates/attention_decode/variants.h"
#include "kernel_templates/kit/fallbacks.h"

namespace hone::attention_decode {
namespace {

/// Registers of a compute warp's thread: sums, the query, and what a step of a unit needs besides.
std::int64_t held_registers(const DecodeProblem& p, const RingConfig& c) {
    const std::int64_t row_blocks = ceil_div(shape(p, c).geometry.block_rows(), 8);
    const std::int64_t column_blocks = ceil_div(p.head_dim, 16);
    return row_blocks * 6 * column_blocks + row_blocks * c.unit / 2 + (p.fp8_cache() ? 52 : 44);
}

constexpr Constraint constraints[] = {
    rows_are_wide,
    has_rows_of_8_or_16<RingConfig>,
    rule("a stage is always filled by the same warp and taken by the same warp",
         [](const RingConfig& c) {
             return c.stages % c.warps == 0 && (c.producers == 0 || c.stages % c.producers == 0);
         }),
    rule("the copy engine takes pages of multiples of 8 tokens that fill units, or that units fill",
         [](const DecodeProblem& p, const RingConfig& c) {
             return c.producers != 0 || shape(p, c).has_boxes();
         }),
    rule("the ring and the warps' sums must fit shared memory, as often as blocks are resident",
         [](const DecodeProblem& p, const RingConfig& c, const DeviceTraits& t) {
             const std::int64_t bytes = shape(p, c).shared_bytes();
             return bytes <= t.max_shared_bytes_per_block &&
                    c.blocks_per_sm * (bytes + 1024) <= t.shared_bytes_per_sm;
         }),
    rule("16 KiB a block and 32 KiB a multiprocessor at least are under way",
         [](const DecodeProblem& p, const RingConfig& c) {
             const Ring ring = shape(p, c);
             const std::int64_t bytes = ring.stages * ring.stage_bytes();
             return bytes >= 16 * 1024 && c.blocks_per_sm * bytes >= 32 * 1024;
         }),
    rule("sums and query must fit a thread's registers",
         [](const DecodeProblem& p, const RingConfig& c) {
             // A quarter of a multiprocessor has a quarter of the registers, for whole warps.
             const std::int64_t quarters = ceil_div(shape(p, c).threads(), 128);
             const std::int64_t share = 65536 / (128 * quarters * c.blocks_per_sm) / 8 * 8;
             return held_registers(p, c) <= std::min<std::int64_t>(share, 232);
         }),
    rule("a cluster does all for its list: nothing is left to join, and lists do not stand side by side",
         [](const RingConfig& c) { return c.cluster == 1 || (c.join == 0 && c.side_by_side == 0); }),
    rule("clusters are for lists that leave multiprocessors idle, and units for each of their blocks",
         [](const DecodeProblem& p, const RingConfig& c, const DeviceTraits& t) {
             return c.cluster == 1 || (blocks(p, cut(p, c), t) <= t.sm_count * c.blocks_per_sm &&
                                       c.cluster * c.unit <= p.tokens_seen());
         }),
    rule("what is read is known before the call ahead has ended: a contiguous cache, lengths of the host",
         [](const DecodeProblem& p, const RingConfig& c) {
             return c.ahead == 0 || (!p.paged() && !p.has_lengths());
         }),
    lists_fit_side_by_side<RingConfig>,
    units_are_filled<RingConfig>,
};

double predict(const DecodeProblem& p, const RingConfig& c, const DeviceTraits& traits) {
    const Ring ring = shape(p, c);
    const double row_blocks = static_cast<double>(ceil_div(ring.geometry.block_rows(), 8));
    const double column_blocks = static_cast<double>(ceil_div(p.head_dim, 16));
    const double widen = p.fp8_cache() ? 8.0 : 0.0;
    const bool engine = c.producers == 0;
    // One lane waits for a stage and asks for its boxes, of K and V.
    const double boxes = 2.0 * ring.panels() * ring.unit / ring.box_tokens();
    const double producer_cycles = engine ? (250.0 + 54.0 * boxes) * 16.0 / ring.unit : 0.0;
    const double threads = ring.threads();
    const double fit =
        std::floor(std::min(static_cast<double>(traits.shared_bytes_per_sm) / (ring.shared_bytes() + 1024.0),
                            static_cast<double>(traits.registers_per_sm) /
                                (threads * static_cast<double>(held_registers(p, c)))));
    // Heads lie inside of tokens: the lists of a sequence apart ask for parts of the same pages of memory at
    // different times. What cp.async asks for reaches memory in a better order than boxes.
    const bool apart = p.kv_heads > 1 && c.side_by_side == 0;
    const double order = (apart ? 1.04 : 1.0) * (c.unit == 16 ? 1.013 : 1.0) * (engine ? 1.0 : 0.96);
    const double rest = 2.2 + (engine ? 0.0 : 0.5) + (p.page_size > 0 ? 0.45 : 0.0) +
                        0.04 * static_cast<double>(c.warps * c.unit) / 16 - (c.ahead != 0 ? 0.3 : 0.0);
    return predict_us(p, cut(p, c),
                      {.in_flight_bytes = static_cast<double>(ring.stages * ring.stage_bytes()),
                       .instructions = column_blocks * (3.0 + 2.0 * row_blocks + widen) + 70.0 * row_blocks +
                                       400.0 / static_cast<double>(c.unit),
                       .rest_us = rest,
                       .slowdown = order,
                       .blocks_that_fit = fit,
                       .producer_cycles = producer_cycles},
                      traits);
}

/// The config that the cost model likes best, of a few measured shapes. How parts of lists meet in the last
/// block has not been measured against all of them: the tuner may choose it.
std::optional<RingConfig> fallback(const Problem& problem, const DeviceTraits& traits) {
    std::vector<RingConfig> configs = combinations<RingConfig>(
        {{.unit = 32, .stages = 12},
         {.unit = 32, .stages = 8},
         {.unit = 32, .stages = 4},
         {.warps = 8, .unit = 32, .stages = 8},
         {.stages = 12, .blocks_per_sm = 2},
         {.stages = 8},
         {.stages = 4}},
        ring_tunables,
        {&RingConfig::rows, &RingConfig::producers, &RingConfig::cluster, &RingConfig::side_by_side,
         &RingConfig::ahead});
    std::erase_if(configs, [](const RingConfig& c) { return c.cluster == 16; });
    return best_of<RingConfig>(problem, ring, configs, traits);
}

}  // namespace

const Variant ring{.name = "ring",
                   .summary =
                       "the cache passes through a ring in shared memory, filled by the copy engine or "
                       "cp.async; products on tensor cores",
                   .source = "attention_decode/ring/kernel.cu",
                   .min_arch = {9, 0, false},
                   .tunables = ring_tunables,
                   .constraints = constraints,
                   .kernels = ring_kernels,
                   .plan = typed<ring_plan>,
                   .fallback = typed<fallback>,
                   .access_elements = typed<ring_access_elements>,
                   .predict_us = typed<predict>};

}  // namespace hone::attention_decode
