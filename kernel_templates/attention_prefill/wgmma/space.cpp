#include <optional>
#include <vector>

#include "kernel_templates/attention_prefill/variants.h"
#include "kernel_templates/attention_prefill/wgmma/rank.h"
#include "kernel_templates/kit/fallbacks.h"

namespace hone::attention_prefill {
namespace warpgroup {
namespace {

constexpr auto tunables = tunables_of({
    tunable<&WgmmaConfig::consumers>("warpgroups of 64 queries; several multiply in turn (ping-pong)",
                                     {1, 2, 3}),
    tunable<&WgmmaConfig::tile_n>("keys of a stage", {64, 80, 96, 112, 128, 144, 176}),
    tunable<&WgmmaConfig::stages>("of keys, and of values", {2, 3}),
    tunable<&WgmmaConfig::query_stages>("tiles whose queries stand in shared memory", {1, 2}),
    tunable<&WgmmaConfig::blocks_per_sm>("resident blocks a multiprocessor", {1, 2, 3}),
    tunable<&WgmmaConfig::query_in_registers>("1: queries are the left operand from registers", {0, 1}),
    of_launch_alone(tunable<&WgmmaConfig::section_mib>(
        "of level 2 for the keys and values of heads that are worked on together", {4, 8, 24})),
    tunable<&WgmmaConfig::dynamic>("1: blocks draw their tiles; 0: each has its own", {0, 1}),
    tunable<&WgmmaConfig::softmax_first>(
        "1: all exponentials stand before the wait for the product beside them; 0: most", {0, 1}),
    tunable<&WgmmaConfig::late_maxima>(
        "1: references of rows rise behind a block's exponentials, where those are too large; 0: in front",
        {0, 1}),
    programmatic_launch<&WgmmaConfig::programmatic>(),
});

/// A thread's registers beside those that it holds throughout: what the compiler needs without spilling.
int working_registers(const AttentionProblem& p, const Geometry& g) {
    const bool has_hidden_keys = p.window > 0 || (p.lengths != Lengths::none && !p.paged());
    const bool starts_with_few = g.widens() && g.blocks_per_sm > 1;  // 80 at the launch: more than is moved
    return 32 + (p.softcap ? 8 : 0) + (has_hidden_keys && !g.by_rows() ? 8 : 0) + (starts_with_few ? 8 : 0);
}

/// Where a warp can multiply a block's keys once more by itself, while they still stand in their stage.
bool may_be_late(const AttentionProblem& p) { return !p.fp8_cache(); }

/// Up to four rounds of tiles.
bool is_short(const AttentionProblem& p, const WgmmaConfig& c, const DeviceTraits& traits) {
    return tiles(p, geometry(p, c)) <= 4 * places(c, traits);
}

constexpr Constraint constraints[] = {
    rule("tensor cores multiply fp16 and bf16",
         [](const AttentionProblem& p) { return p.dtype != Dtype::fp32; }),
    rule("rows must have whole 16-byte chunks: head_dim is a multiple of 8, of 16 where keys are codes",
         [](const AttentionProblem& p) { return p.head_dim % (p.fp8_cache() ? 16 : 8) == 0; }),
    rule("many producers have their own tiles: drawing costs them more than it evens out",
         [](const AttentionProblem& p, const WgmmaConfig& c) {
             return c.dynamic == 0 || !geometry(p, c).many_produce();
         }),
    rule("the resident blocks' queries, keys and values must fit shared memory",
         [](const AttentionProblem& p, const WgmmaConfig& c) {
             const Geometry g = geometry(p, c);
             return g.blocks_per_sm * (g.shared_bytes() + reserved_bytes) <= shared_bytes_per_sm;
         }),
    rule("scores, weights and sums must fit a thread's registers",
         [](const AttentionProblem& p, const WgmmaConfig& c) {
             const Geometry g = geometry(p, c);
             return g.held_registers(c.query_in_registers != 0) + working_registers(p, g) <=
                    g.consumer_registers();
         }),
    rule("queries that are multiplied as codes stay in shared memory",
         [](const AttentionProblem& p, const WgmmaConfig& c) {
             return c.query_in_registers == 0 || !geometry(p, c).keys_stay_codes();
         }),
    rule("queries in registers leave their stage free at once: one is enough",
         [](const WgmmaConfig& c) { return c.query_in_registers == 0 || c.query_stages == 1; }),
    rule("a second consumer is for more than 64 queries, a third for more than 128 and heads of up to 64",
         [](const AttentionProblem& p, const WgmmaConfig& c) {
             return p.q_len > (c.consumers - 1) * block_rows && (c.consumers < 3 || p.head_dim <= 64);
         }),
    rule("late maxima are for 16-bit keys, and have all exponentials in front of the wait",
         [](const AttentionProblem& p, const WgmmaConfig& c) {
             return c.late_maxima == 0 || (may_be_late(p) && c.softmax_first == 0);
         }),
    rule("a lone consumer is for so few tiles that multiprocessors have hardly more than one each, or for "
         "codes, of "
         "which two blocks would need too many registers",
         [](const AttentionProblem& p, const WgmmaConfig& c, const DeviceTraits& t) {
             const Geometry g = geometry(p, c);
             return c.consumers * c.blocks_per_sm > 1 || g.widens() || tiles(p, g) <= 4 * t.sm_count;
         }),
    rule("a third stage is for those of up to 128 keys",
         [](const WgmmaConfig& c) { return c.stages == 2 || c.tile_n <= 128; }),
    rule("sections order causal tiles, where no window makes them equal",
         [](const AttentionProblem& p, const WgmmaConfig& c) { return c.section_mib == 24 || p.has_ramp(); }),
    rule("a second stage of queries and drawing are for blocks with more than one tile",
         [](const AttentionProblem& p, const WgmmaConfig& c, const DeviceTraits& t) {
             return (c.query_stages == 1 && c.dynamic == 0) || tiles(p, geometry(p, c)) > places(c, t);
         }),
    rule("programmatic launch is for short calls: up to four rounds of tiles",
         [](const AttentionProblem& p, const WgmmaConfig& c, const DeviceTraits& t) {
             return c.programmatic == 0 || is_short(p, c, t);
         }),
};

/// The config that the cost model likes best, of a few proven shapes of tiles.
std::optional<WgmmaConfig> fallback(const Problem& problem, const DeviceTraits& traits) {
    constexpr WgmmaConfig shapes[] = {{.consumers = 3, .tile_n = 128},
                                      {.consumers = 2, .tile_n = 128, .stages = 3, .query_in_registers = 1},
                                      {.consumers = 2, .tile_n = 128, .stages = 3},
                                      {.consumers = 2, .tile_n = 128},
                                      {.consumers = 2, .tile_n = 96},
                                      {.consumers = 2, .tile_n = 64},
                                      {.tile_n = 128, .blocks_per_sm = 2},
                                      {.tile_n = 64, .blocks_per_sm = 2},
                                      {.tile_n = 128},
                                      {.tile_n = 64}};
    const AttentionProblem p(problem);
    const bool equal_tiles = !p.has_ramp() && p.lengths == Lengths::none;
    std::vector<WgmmaConfig> configs;
    for (WgmmaConfig c : shapes) {
        // Late maxima beside them would spill where scores are capped; without late ones, of codes, nobody
        // has measured them.
        if (p.softcap && c.query_in_registers != 0) continue;
        for (const std::int64_t drawn : {1, 0}) {
            // Equal tiles have nothing to even out.
            if (drawn == 1 && equal_tiles) continue;
            for (const std::int64_t section : tunables[index_of(&WgmmaConfig::section_mib)].values.span()) {
                c.late_maxima = may_be_late(p) ? 1 : 0;
                c.dynamic = drawn;
                c.section_mib = section;
                c.programmatic = is_short(p, c, traits) ? 1 : 0;
                configs.push_back(c);
            }
        }
    }
    return best_of<WgmmaConfig>(problem, attention_prefill::wgmma, configs, traits);
}

}  // namespace
}  // namespace warpgroup

const Variant wgmma{.name = "wgmma",
                    .summary = "warpgroup tensor cores fed by tensor copies, one warpgroup for the copies",
                    .source = "attention_prefill/wgmma/kernel.cu",
                    .min_arch = {9, 0, true},
                    .tunables = warpgroup::tunables,
                    .constraints = warpgroup::constraints,
                    .kernels = warpgroup::kernels,
                    .plan = typed<warpgroup::plan>,
                    .fallback = typed<warpgroup::fallback>,
                    .access_elements = typed<warpgroup::access_elements>,
                    .predict_us = typed<warpgroup::predict>};

}  // namespace hone::attention_prefill
