// Tunables of products by product.cuh, and the rules that their configs obey whatever is multiplied: what the
// variants' own tables begin or end with.
#pragma once

#include <algorithm>
#include <array>
#include <optional>

#include "kernel_templates/kit/rules.h"
#include "kernel_templates/linear/wgmma/rank.h"

namespace hone::linear::gemm {

inline constexpr auto tunables = tunables_of({
    read_with<&WgmmaConfig::swapped>(tunable<&WgmmaConfig::tile_m>(
        "rows of a tile: tokens; swapped: results a token", {64, 128, 192, 256})),
    read_with<&WgmmaConfig::swapped>(tunable<&WgmmaConfig::tile_n>(
        "columns of a tile: results a token; swapped: tokens",
        {8,   16,  32,  64,  72,  80,  88,  96,  104, 112, 120, 128, 136, 144,
         152, 160, 168, 176, 184, 192, 200, 208, 216, 224, 232, 240, 248, 256})),
    tunable<&WgmmaConfig::consumers>("warpgroups that multiply", {1, 2, 3}),
    tunable<&WgmmaConfig::ping_pong>("1: they take tiles in turn instead of sharing one", {0, 1}),
    tunable<&WgmmaConfig::blocks_per_sm>("resident blocks a multiprocessor", {1, 2}),
    tunable<&WgmmaConfig::swapped>("1: the weight is the left operand, for few tokens", {0, 1}),
    tunable<&WgmmaConfig::tail_split>(
        "1: tiles of a last round that few blocks take are split over all of them; 2: between the two blocks "
        "of a cluster",
        {0, 1, 2}),
    tunable<&WgmmaConfig::cluster_k>("parts of a sum, added up within a cluster of blocks",
                                     {1, 2, 3, 4, 6, 8}),
    tunable<&WgmmaConfig::staged>(
        "1: results leave through shared memory and the copy engine; 2: few at a "
        "time; 3: small panels in turns; with cluster_k 1: sums are joined early, 2: "
        "the others' come into memory of their own",
        {0, 1, 2, 3}),
    tunable<&WgmmaConfig::raster>("rows of tiles that are worked on together", {1, 8, 16}),
    tunable<&WgmmaConfig::l2_hint>("1: weights leave level 2 first, x last", {0, 1}),
    make_tunable(
        &WgmmaConfig::programmatic, "programmatic",
        "1: programmatic dependent launch; 2: of the successor, late and beside the block; 3: so, and few "
        "weights before the call ahead has ended",
        {0, 1, 2, 3}, 2),
});

/// Of variants whose blocks may be neighbours.
template <auto neighbours>
[[nodiscard]] constexpr auto neighbours_tunable() {
    return of_launch_alone(
        tunable<neighbours>("blocks that stand side by side, on neighbouring "
                            "multiprocessors, and take neighbouring tiles",
                            {1, 2}));
}

/// Whether few early weights, as tile.cuh has them (what 32 KiB hold, two stages at least), leave stages of
/// the ring to be filled in turn with x. Where they do not, programmatic = 3 is what 2 is.
[[nodiscard]] inline bool has_few_early_weights(const Geometry& g) {
    const int pitch = g.swapped ? g.operands.left_pitch : g.operands.right_pitch;
    const int weight_bytes = g.weight_box() * (g.gated ? 2 : 1) * pitch;
    return std::max(32 * 1024 / weight_bytes, 2) < g.stages();
}

/// What fallbacks make of a successor that starts late: predictions are of that, for no sweep has the other
/// yet.
template <class P, class C>
[[nodiscard]] std::optional<C> with_few_early_weights(const P& p, std::optional<C> config) {
    if (config && config->programmatic == 2 && has_few_early_weights(geometry(p, *config)))
        config->programmatic = 3;
    return config;
}

/// A thread's registers: 232 where two consumers are given the producer's, 160 of three, else what the launch
/// gives. It gives 128 with three consumers, and those of one instruction must fit there.
[[nodiscard]] inline bool fits_registers(const LinearProblem& p, const Geometry& g) {
    const bool plain_results = p.gated || (!p.bias && !p.residual && p.activation == Activation::none);
    if (g.sums() > (plain_results ? 192 : 128)) return false;
    if (g.consumers == 3) return g.sums() <= (plain_results ? 96 : 88);
    if (g.blocks_per_sm == 1 && g.consumers == 2) return true;
    return g.sums() + 40 <= 65536 / (g.threads() * g.blocks_per_sm);
}

/// Whether blocks may be neighbours: where both operands are multiplied as they are in memory.
template <class C>
inline constexpr bool has_neighbours = requires(const C& c) {
    c.neighbours;
};

/// Whether small panels of results may leave in turns: there, and where codes leave so little of a stage that
/// one more fits.
template <class C>
inline constexpr bool has_turns = has_neighbours<C> || requires(const C& c) {
    c.stages_together;
};

/// Whether blocks of a cluster may join their sums early (Geometry::joins_early): of elements that are
/// multiplied as they are in memory.
template <class C>
inline constexpr bool has_early_joins = has_neighbours<C> && !requires(const C& c) {
    c.promote;
};

/// Blocks side by side that take neighbouring tiles: 1 where a config knows none.
template <class C>
constexpr std::int64_t neighbours(const C& c) {
    if constexpr (has_neighbours<C>) return c.neighbours;
    return 1;
}

/// How tiles are shared out and leave, whatever a stage of the ring holds. P is constructible from a Problem
/// and is the product (a LinearProblem), C is a config that is or derives from WgmmaConfig.
template <class P, class C>
inline constexpr auto schedule_rules = std::to_array<Constraint>({
    rule("more than half of a tile's tokens must exist", through<C>(&C::swapped),
         [](const P& p, const C& c) {
             return c.swapped != 0 ? c.tile_n == 8 || c.tile_n < 2 * p.tokens : c.tile_m < 2 * p.tokens;
         }),
    rule("a sum is split over a cluster between tiles that are shared and not staged, or in the last round; "
         "two blocks whose two warpgroups share tiles without a gate join their sums early where they are "
         "staged",
         through<C>(&C::staged),
         [](const P& p, const C& c) {
             if (c.cluster_k == 1) return true;
             if (c.tail_split != 0 || c.ping_pong != 0) return false;
             if (c.staged == 0 || c.staged == 2) return true;
             const Geometry g = geometry(p, c);
             return has_early_joins<C> && g.can_join_early() &&
                    steps(p) >= 2 * (g.last_steps() + g.sent_stages());
         }),
    rule("a sum is split over a cluster where multiprocessors would be idle, into parts of four steps at "
         "least",
         through<C>(&C::programmatic),
         [](const P& p, const C& c, const DeviceTraits& t) {
             return c.cluster_k == 1 || (tiles(p, geometry(p, c)) * c.cluster_k <= resident_blocks(c, t) &&
                                         4 * c.cluster_k <= steps(p));
         }),
    rule("a last round is split that leaves half of the blocks idle, into parts that run at the same steps "
         "and share "
         "level 2",
         through<C>(&C::programmatic),
         [](const P& p, const C& c, const DeviceTraits& t) {
             return c.tail_split == 0 || parts_of_tail(p, c, t) > 1;
         }),
    rule("two blocks of a cluster share tiles of whole blocks of rows, and are neighbours",
         [](const P& p, const C& c) {
             return c.tail_split != 2 ||
                    (c.ping_pong == 0 && c.blocks_per_sm == 1 && !geometry(p, c).halves() &&
                     (!has_neighbours<C> || neighbours(c) == 2));
         }),
    rule("whole sums go through shared memory, except those of up to 64 tokens as columns, and where rows of "
         "results begin anywhere: out is no multiple of 8",
         through<C>(&C::staged),
         [](const P& p, const C& c) {
             if (p.out % 8 != 0) return c.staged == 0 || geometry(p, c).has_inbox();
             return c.staged != 0 || c.cluster_k > 1 || (c.swapped != 0 && p.tokens <= 64);
         }),
    rule("few results at a time, or panels in turns, are staged where the ring gets a stage more for it",
         through<C>(&C::staged),
         [](const P& p, const C& c) {
             Geometry few = geometry(p, c);
             few.operands.stage_steps = 1;
             Geometry many = few;
             many.staged = 1;
             return c.staged < 2 || c.cluster_k > 1 || few.stages() > many.stages();
         }),
    rule("few results at a time are staged of weights as the left operand, whole tiles, between neighbours",
         [](const C& c) {
             return c.staged != 2 || c.cluster_k > 1 ||
                    (neighbours(c) > 1 && c.swapped != 0 && c.tail_split != 1);
         }),
    rule(
        "panels take turns where blocks may be neighbours: of whole tiles, more than 128 tokens, one block a "
        "multiprocessor, and a successor that starts late",
        through<C>(&C::programmatic),
        [](const P& p, const C& c) {
            return c.staged != 3 || (has_turns<C> && c.tail_split != 1 && c.blocks_per_sm == 1 &&
                                     c.programmatic >= 2 && p.tokens > 128);
        }),
    rule("panels that leave one after the other share no tokens where a residual is added: it may be the "
         "result itself, and is read for each",
         through<C>(&C::staged),
         [](const P& p, const C& c) {
             if (c.staged == 0 || c.swapped == 0 || !p.residual || geometry(p, c).has_inbox()) return true;
             const Geometry g = geometry(p, c);
             const bool together = c.staged != 3 && g.store_panels() >= g.panels();
             return together || (g.panels_across() * g.panel_tokens() == g.tile_n &&
                                 (!g.halves() || 2 * g.half_panels() * g.panel_tokens() == g.tile_n));
         }),
    rule("neighbours take several tiles of more than 128 tokens, whole sums, one block a multiprocessor",
         [](const P& p, const C& c) {
             return neighbours(c) == 1 ||
                    (c.cluster_k == 1 && c.blocks_per_sm == 1 && c.programmatic >= 2 &&
                     (p.tokens > 128 || c.tail_split == 2) && tiles(p, geometry(p, c)) > 1);
         }),
    rule("neighbours share the weight's rows where there are several tiles of tokens: tiles go row by row "
         "then where it is the left operand, else in groups of 8 rows; those whose sums are joined early in "
         "either way",
         [](const P& p, const C& c) {
             const bool by_row = neighbours(c) > 1 && c.swapped != 0 && tiles_along(p, geometry(p, c)) > 1;
             if (c.raster == 1 && geometry(p, c).joins_early()) return true;
             return (c.raster == 1) == by_row && (neighbours(c) == 1 || c.raster <= 8);
         }),
    rule("larger groups are for more than 8 rows of tiles, worked on in more than one round",
         through<C>(&C::programmatic),
         [](const P& p, const C& c, const DeviceTraits& t) {
             const Geometry g = geometry(p, c);
             return c.raster <= 8 ||
                    (tiles_across(p, g) > 8 && tiles_along(p, g) > 1 && tiles(p, g) > resident_blocks(c, t));
         }),
    rule("hints are for weights that are read once: up to 256 tokens", through<C>(&C::l2_hint),
         [](const P& p, const C& c) { return c.l2_hint == 0 || p.tokens <= 256; }),
    rule("early weights are for up to 256 tokens: with more, they are in the way of the call before",
         through<C>(&C::programmatic),
         [](const P& p, const C& c) { return c.programmatic != 1 || p.tokens <= 256; }),
    rule(
        "a successor starts late with more than 64 tokens: with fewer, memory would wait for its first loads",
        through<C>(&C::programmatic),
        [](const P& p, const C& c) { return c.programmatic < 2 || p.tokens > 64; }),
    rule("few early weights are less than the ring holds", through<C>(&C::programmatic),
         [](const P& p, const C& c) { return c.programmatic < 3 || has_few_early_weights(geometry(p, c)); }),
});

/// What tiles there are, of operands that both go through shared memory.
template <class P, class C>
inline constexpr auto tile_rules = std::to_array<Constraint>({
    rule("warpgroups take whole blocks of 64 rows; ping-pong is between two of them", through<C>(&C::swapped),
         [](const P& p, const C& c) {
             const Geometry g = geometry(p, c);
             return (!g.ping_pong || g.consumers == 2) &&
                    (g.tile_m % (block_rows * g.sharers() * (g.gated_rows() ? 2 : 1)) == 0 ||
                     (g.tile_m == 192 && g.halves()));
         }),
    rule(
        "two warpgroups halve the middle of three blocks of weights that have no gate and meet a multiple of "
        "16 tokens, where blocks may be neighbours",
        through<C>(&C::swapped),
        [](const P& p, const C& c) {
            const Geometry g = geometry(p, c);
            return !g.halves() || (has_neighbours<C> && !g.gated && g.tile_n % 16 == 0);
        }),
    rule("halves of a block leave in turns", through<C>(&C::staged),
         [](const P& p, const C& c) { return c.staged == 3 || !geometry(p, c).halves(); }),
    rule("gate and up columns meet in one thread, and staged rows have 16 results at least",
         through<C>(&C::staged),
         [](const P& p, const C& c) {
             const Geometry g = geometry(p, c);
             return (!g.gated_columns() || g.tile_n % 16 == 0) &&
                    (!g.staged || g.has_inbox() || g.swapped || g.result_columns() % 16 == 0);
         }),
    rule("a thread's sums must fit its registers", through<C>(&C::swapped),
         [](const P& p, const C& c) { return fits_registers(p, geometry(p, c)); }),
    rule("one consumer is for 64 rows of results; two blocks a multiprocessor have one consumer each",
         through<C>(&C::swapped),
         [](const P& p, const C& c) {
             return (c.consumers == 1) == (c.consumers == 1 && geometry(p, c).result_rows() == 64) &&
                    (c.blocks_per_sm == 1 || c.consumers == 1);
         }),
    rule("three consumers share tiles of 192 rows, of elements that are multiplied as they are in memory",
         through<C>(&C::swapped),
         [](const C& c) { return c.consumers != 3 || (has_neighbours<C> && c.tile_m == 192); }),
    rule("at least three stages must fit shared memory", through<C>(&C::staged),
         [](const P& p, const C& c) { return geometry(p, c).stages() >= 3; }),
    rule("weights are the left operand for up to 512 tokens, or up to 2048 where blocks may be neighbours, "
         "then in tiles of 128 x 128 at least; up to 64 tokens share a tile, more share tiles of 64, many of "
         "96, or of 72 with more than 128 rows",
         through<C>(&C::swapped),
         [](const P& p, const C& c) {
             if (c.swapped == 0) return true;
             const std::int64_t many = c.tile_m > 128 && has_neighbours<C> ? 72 : 96;
             const std::int64_t least = p.tokens <= 64 ? p.tokens : p.tokens <= 128 ? 64 : many;
             if (c.tile_n < least) return false;
             return p.tokens <= 512 ||
                    (has_neighbours<C> && p.tokens <= 2048 && c.tile_m * c.tile_n >= 128 * 128);
         }),
    rule("weights as the left operand: no ping-pong, and one consumer for up to 64 tokens",
         through<C>(&C::swapped),
         [](const P& p, const C& c) {
             return c.swapped == 0 || (c.ping_pong == 0 && (c.consumers == 1 || p.tokens > 64));
         }),
    rule("tiles with x as the left operand have 64 columns at least", through<C>(&C::swapped),
         [](const C& c) { return c.swapped != 0 || c.tile_n >= 64; }),
    rule("tiles of less than 128 x 128 are for problems that such tiles cover in four rounds",
         through<C>(&C::swapped),
         [](const P& p, const C& c, const DeviceTraits& t) {
             const std::int64_t large = ceil_div(p.tokens, 128) * ceil_div(p.products() * p.out, 128);
             return c.swapped != 0 || c.tile_m * c.tile_n >= 128 * 128 || large <= 4 * t.sm_count;
         }),
    rule("the parts of sums that meet in a cluster must fit the rings; with weights as the left operand a "
         "thread has 144 at most: more of them spill",
         through<C>(&C::staged),
         [](const P& p, const C& c) {
             const Geometry g = geometry(p, c);
             if (c.cluster_k == 1) return true;
             const bool fits =
                 g.joins_early() || g.has_inbox() || g.exchange_bytes() <= g.stages() * g.stage_bytes();
             return fits && (!g.swapped || g.sums() <= 144);
         }),
});

/// Beside these, where blocks may be neighbours.
template <class P, class C>
inline constexpr auto order = std::to_array<Constraint>({
    rule("weights as the left operand of more than 512 tokens are read once: row by row, between neighbours",
         [](const P& p, const C& c) { return c.swapped == 0 || p.tokens <= 512 || c.neighbours > 1; }),
});

template <class P, class C>
inline constexpr auto rules = joined(tile_rules<P, C>, schedule_rules<P, C>);

}  // namespace hone::linear::gemm
