#include <algorithm>
#include <cmath>

#include "kernel_templates/attention_prefill/wgmma/rank.h"

#include "kernel_templates/kit/clock.h"

namespace hone::attention_prefill::warpgroup {
namespace {

constexpr std::int64_t largest_section_mib = 24;

/// Cycles in which all consumers of a multiprocessor go through a block of keys each: tensor cores are busy
/// with `multiply` for each of them (power keeps their clock down), a consumer needs its own softmax and most
/// of the products one after the other, and exponentials and additions of all share the other units.
double block_cycles(const AttentionProblem& p, const Geometry& g, double at_once) {
    const double multiply = static_cast<double>(std::max<std::int64_t>(64, p.head_dim) * g.tile_n) / 16;
    const double softmax = 480.0 + 11.0 * g.tile_n * (p.softcap ? 1.8 : 1.0);
    return std::max(
        {1.33 * at_once * multiply, softmax + (at_once - 0.9) * multiply, 9.0 * at_once * g.tile_n});
}

/// Blocks of keys that the tiles of a sequence's head go through, all together.
double blocks_of_head(const AttentionProblem& p, const Geometry& g) {
    const double head_rows = static_cast<double>(rows(p, g));
    const double whole = std::ceil(static_cast<double>(p.kv_len) / g.tile_n);
    if (!p.causal) return head_rows * whole;
    // A tile also goes through the keys that only some of its rows see, half of them on average twice.
    const double seen = visible_pairs(p) / static_cast<double>(g.tile_m());
    return std::min(head_rows * whole, (seen + head_rows * 0.5 * (g.tile_m() + g.tile_n)) / g.tile_n);
}

/// Tiles of a section.
double section_tiles(const AttentionProblem& p, const WgmmaConfig& c) {
    const Sections order = sections(p, c);
    return static_cast<double>(order.heads) * order.rows;
}

/// Bytes of keys and values that the tiles of `heads` heads, of all sequences whose queries are packed, read
/// from device memory when they are worked on together: once, and for each further round of tiles half of
/// them again, those that causal tiles see on average, as far as all exceed half of level 2.
double section_bytes(const AttentionProblem& p, const WgmmaConfig& c, const DeviceTraits& traits,
                     double heads) {
    const double sequences = p.lengths == Lengths::paged ? static_cast<double>(p.batch) : 1.0;
    const double groups = heads * static_cast<double>(p.kv_heads) / static_cast<double>(p.heads);
    const double once =
        2.0 * sequences * groups * static_cast<double>(p.kv_len * p.head_dim * p.element_bytes());
    const double room = std::max(1.0, 0.5 * static_cast<double>(traits.l2_bytes));
    const double lost = std::clamp(once / room - 1.0, 0.0, 1.0);
    const double rounds =
        heads * static_cast<double>(sections(p, c).rows) / static_cast<double>(places(c, traits));
    return once * (1.0 + 0.5 * lost * std::max(0.0, rounds - 1.0));
}

/// Bytes through device memory: queries and results once, keys and values by sections, of which the last has
/// what remains.
double memory_bytes(const AttentionProblem& p, const WgmmaConfig& c, const DeviceTraits& traits) {
    const double element = static_cast<double>(p.element_bytes() * p.head_dim);
    const double own = 2.0 * element * static_cast<double>(p.slots() * p.q_len);
    const double keys = 2.0 * element * static_cast<double>(p.batch * p.kv_heads * p.kv_len);
    if (!p.has_ramp()) return own + keys;
    const Sections order = sections(p, c);
    const double before = order.count - 1;
    const double slots = static_cast<double>(p.slots() / (p.lengths == Lengths::paged ? p.batch : 1));
    return own + before * section_bytes(p, c, traits, order.heads) +
           section_bytes(p, c, traits, slots - before * order.heads);
}

/// What copies of pages cost that are smaller than a stage: one after the other they take longer, which two
/// stages hide badly where consumers take turns. Measured on an H200.
double box_cost(const Geometry& g) {
    if (g.consumers * g.blocks_per_sm == 1) return 0.01 + 0.002 * g.boxes();
    return (g.stages == 2 ? 0.01 : 0.003) * g.boxes();
}

/// Whether sections of the largest size would be the same: of such equals only one is worth trying early.
bool repeats_larger_sections(const AttentionProblem& p, const WgmmaConfig& c) {
    if (!p.has_ramp() || c.section_mib == largest_section_mib) return false;
    WgmmaConfig larger = c;
    larger.section_mib = largest_section_mib;
    return sections(p, c).heads == sections(p, larger).heads;
}

}  // namespace

/// Rounds of tiles, each as long as its blocks of keys take, against the time of memory; plus what a tile and
/// a call cost. Fitted to measurements of 16 problems on an H100.
double predict(const AttentionProblem& p, const WgmmaConfig& c, const DeviceTraits& traits) {
    const Geometry g = geometry(p, c);
    const double cycles_per_us = busy_cycles_per_us(traits);
    const double head_rows = static_cast<double>(rows(p, g));
    const double count = static_cast<double>(tiles(p, g));

    // The blocks of a multiprocessor run beside each other. Dealt tiles end with whole rounds.
    const double mean_blocks = blocks_of_head(p, g) / head_rows;
    const double longest = p.has_ramp() ? std::ceil(static_cast<double>(p.kv_len) / g.tile_n) : mean_blocks;
    const double beside = std::clamp(count / traits.sm_count, 1.0, static_cast<double>(g.blocks_per_sm));
    double rounds = count / static_cast<double>(places(c, traits));
    if (!p.has_ramp()) rounds = std::ceil(rounds);
    const double block_us = block_cycles(p, g, beside * g.consumers) / cycles_per_us;
    double compute_us = std::max(rounds * mean_blocks, longest) * block_us;
    if (p.has_ramp()) {
        // Drawing evens tiles of different lengths out, and has nothing to even out in two rounds, or where
        // all heads are one section and tiles' times vary less (both measured on an H200).
        const int parts = sections(p, c).count;
        const bool is_even = parts == 1 && c.late_maxima != 0;
        if (c.dynamic == 0) compute_us *= rounds <= 2 ? 0.95 : is_even ? 0.98 : 1.02;
        // The longest tiles of each section come first: dealt by place, some blocks get more. Measured on an
        // H200.
        if (c.dynamic == 0 && parts > 1) compute_us *= 1.05 + 0.06 * parts;
        if (rounds * mean_blocks < 2 * longest) compute_us *= 1.05;
        const double at_least = std::min(count, 2.0 * static_cast<double>(places(c, traits)));
        if (section_tiles(p, c) < at_least) compute_us *= 1.03;
    }

    double gain = 1.0;
    if (c.query_in_registers != 0) gain -= p.has_ramp() ? 0.005 : 0.015;
    if (c.query_stages == 2) gain -= p.has_ramp() ? 0.01 : 0.005;
    if (c.stages == 3) gain -= 0.005;
    if (c.softmax_first != 0) gain += 0.012;
    if (c.late_maxima != 0) gain -= 0.06;
    if (beside > 1) gain += 0.06;  // blocks beside each other copy the same keys each for itself
    if (repeats_larger_sections(p, c)) gain += 0.04;
    if (g.by_rows()) gain += g.keys_stay_codes() ? 0.12 : g.widens() ? 0.27 : 0.17;
    if (!g.by_rows() && g.boxes() > 1) gain += box_cost(g);

    const double memory_us = memory_bytes(p, c, traits) / (0.9e-6 * traits.memory_bytes_per_s);
    const double tile_us = std::ceil(rounds) * (g.consumers == 1 ? 1.0 : g.consumers == 2 ? 1.3 : 2.4);
    const double body_us = std::pow(std::pow(gain * compute_us + tile_us, 4) + std::pow(memory_us, 4), 0.25);
    // The first pages are looked up before anything can be copied: a length, then its table.
    const double look_up_us = p.paged() ? 1.2 : 0.0;
    return body_us + look_up_us + 2.4 - (c.programmatic != 0 ? 0.9 : 0.0);
}

}  // namespace hone::attention_prefill::warpgroup
