#include <algorithm>
#include <cmath>

#include "kernel_templates/attention_prefill/rank.h"
#include "kernel_templates/attention_prefill/variants.h"
#include "kernel_templates/attention_prefill/wgmma_tf32/plan.h"
#include "kernel_templates/kit/clock.h"
#include "kernel_templates/kit/fallbacks.h"

namespace hone::attention_prefill {
namespace tf32 {
namespace {

constexpr auto tunables = tunables_of({
    tunable<&WgmmaTf32Config::consumers>("warpgroups that multiply, 64 queries each", {1, 2, 3}),
    tunable<&WgmmaTf32Config::tile_n>("keys of a stage", {32, 64, 96, 128}),
    tunable<&WgmmaTf32Config::stages>("stages of keys, and of values", {1, 2, 3}),
    programmatic_launch<&WgmmaTf32Config::programmatic>(),
});

constexpr Constraint constraints[] = {
    rule("pairs of tf32 numbers are for fp32: other types have variant wgmma",
         [](const AttentionProblem& p) { return p.dtype == Dtype::fp32; }),
    rule("keys and values are fp32 themselves, and do not come in pages",
         [](const AttentionProblem& p) { return !p.paged() && !p.fp8_cache(); }),
    rule("head_dim is a multiple of 4, for rows of 16-byte chunks, and at most 128, for the registers",
         [](const AttentionProblem& p) { return p.head_dim % 4 == 0 && p.head_dim <= 128; }),
    rule("queries and the stages must fit shared memory",
         [](const AttentionProblem& p, const WgmmaTf32Config& c) {
             const Geometry g = geometry(p, c);
             return g.shared_bytes() + reserved_bytes <= shared_bytes_per_sm;
         }),
    rule("results, scores and weights must fit a consumer's registers",
         [](const AttentionProblem& p, const WgmmaTf32Config& c) {
             const Geometry g = geometry(p, c);
             return g.needed_registers() <= g.consumer_registers();
         }),
    rule("a block of keys must fit the splitters' registers: 64 words a thread, 96 beside one consumer",
         [](const AttentionProblem& p, const WgmmaTf32Config& c) {
             const Geometry g = geometry(p, c);
             return g.rounds() <= (g.moves_registers() ? 8 : 12);
         }),
    rule("more than half of a tile's queries must exist",
         [](const AttentionProblem& p, const WgmmaTf32Config& c) {
             return c.consumers == 1 || c.consumers * block_rows < 2 * p.q_len;
         }),
};

/// Cycles of a block of keys: what the tensor cores take for all consumers, and what of softmax, splitting
/// and waiting they do not hide, the less the more of them there are. Fitted to 24 measurements (causal, 512
/// to 4096 tokens, head_dim 64 and 128).
double block_cycles(const Geometry& g) {
    const double products = 3.0 * 2.0 * block_rows * g.tile_n * g.depth() / 1024.0;
    const double beside = 400.0 + 2300.0 / g.consumers + (g.stages == 1 ? 150.0 : 0.0);
    return 1.1 * g.consumers * products + beside;
}

/// Tiles dealt to whichever multiprocessor is free, the longest first: an equal share for all, or the longest
/// tile.
double predict(const AttentionProblem& p, const WgmmaTf32Config& c, const DeviceTraits& traits) {
    const Geometry g = geometry(p, c);
    const auto count = static_cast<double>(tiles(p, g));
    const double keys = visible_pairs(p) / static_cast<double>(p.q_len);
    // Blocks of keys that a tile sees in part.
    const double edges = p.causal ? 0.5 * (g.tile_m() + g.tile_n) * (p.window > 0 ? 2.0 : 1.0) : 0.0;
    const double blocks = std::ceil((keys + edges) / g.tile_n);
    const double longest = p.has_ramp() ? static_cast<double>(ceil_div(p.kv_len, g.tile_n)) : blocks;

    constexpr double tile_cycles = 4000.0;
    const double share = count * (blocks * block_cycles(g) + tile_cycles) / traits.sm_count;
    const double rounds = std::ceil(count / traits.sm_count) / (count / traits.sm_count);
    const double cycles =
        std::max(share * (p.causal ? 1.0 : rounds), longest * block_cycles(g) + tile_cycles);
    const double cycles_per_us = busy_cycles_per_us(traits);
    return cycles / cycles_per_us + 3.0 - (c.programmatic != 0 ? 0.5 : 0.0);
}

/// The config that the cost model likes best, of a few shapes of tiles.
std::optional<WgmmaTf32Config> fallback(const Problem& problem, const DeviceTraits& traits) {
    constexpr WgmmaTf32Config configs[] = {{.consumers = 2, .tile_n = 64, .stages = 2, .programmatic = 1},
                                           {.consumers = 2, .tile_n = 64, .stages = 1, .programmatic = 1},
                                           {.consumers = 3, .tile_n = 64, .stages = 2, .programmatic = 1},
                                           {.consumers = 2, .tile_n = 32, .stages = 2, .programmatic = 1},
                                           {.consumers = 1, .tile_n = 64, .stages = 1, .programmatic = 1}};
    return best_of<WgmmaTf32Config>(problem, wgmma_tf32, configs, traits);
}

}  // namespace
}  // namespace tf32

const Variant wgmma_tf32{
    .name = "wgmma_tf32",
    .summary = "fp32 as pairs of tf32 numbers, three products each on the warpgroup tensor cores",
    .source = "attention_prefill/wgmma_tf32/kernel.cu",
    .min_arch = {9, 0, true},
    .tunables = tf32::tunables,
    .constraints = tf32::constraints,
    .kernels = tf32::kernels,
    .plan = typed<tf32::plan>,
    .fallback = typed<tf32::fallback>,
    .access_elements = typed<tf32::access_elements>,
    .predict_us = typed<tf32::predict>};

}  // namespace hone::attention_prefill
