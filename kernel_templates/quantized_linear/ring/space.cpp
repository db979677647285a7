#include <algorithm>
#include <vector>

#include "kernel_templates/kit/fallbacks.h"
#include "kernel_templates/kit/rules.h"
#include "kernel_templates/quantized_linear/rank.h"
#include "kernel_templates/quantized_linear/ring/rank.h"
#include "kernel_templates/quantized_linear/ring/tunables.h"
#include "kernel_templates/quantized_linear/variants.h"

namespace hone::quantized_linear {
namespace {
constexpr const auto& tunables = ring_tunables;

/// Registers of a compute warp's thread: sums, those of the group, x and codes of 32 columns, and the rest.
std::int64_t registers(const RingGeometry& g) {
    const int fragments = g.warp_rows / 16;
    const int sums = fragments * g.token_blocks() * 4 * (g.group != 0 ? 2 : 1);
    const int zeros = g.zeros ? 2 * fragments : 0;
    return sums + 4 * g.token_blocks() + zeros + 48;
}
/// The least value of `tokens` that holds all, up to 64.
std::int64_t tokens_held(const QuantizedProblem& p) {
    return *std::ranges::lower_bound(tunables[0].values.span(), std::min<std::int64_t>(p.tokens, 64));
}

constexpr Constraint constraints[] = {
    rule("codes of 4 or 8 bits meet x of 16, up to 64 tokens",
         [](const QuantizedProblem& p) { return p.is_packed() && p.tokens <= 64; }),
    rule("copies are of multiples of 16 bytes at such addresses: in is a multiple of 16",
         [](const QuantizedProblem& p) { return p.in % 16 == 0; }),
    rule("a block holds all tokens, and no more than it must", through<RingConfig>(&RingConfig::tokens),
         [](const QuantizedProblem& p, const RingConfig& c) { return c.tokens == tokens_held(p); }),
    rule("a stage has whole units, of 64 columns or a group, for each of the warps that share it",
         through<RingConfig>(&RingConfig::stage_columns),
         [](const QuantizedProblem& p, const RingConfig& c) {
             return c.stage_columns % (geometry(p, c).unit_columns() * c.k_warps) == 0;
         }),
    rule("tiles have rows that exist; more than 64 where that leaves enough of them",
         through<RingConfig>(&RingConfig::cluster_k),
         [](const QuantizedProblem& p, const RingConfig& c, const DeviceTraits& t) {
             return c.rows == 64 || (c.rows / 2 < p.out && 2 * tiles(p, c) * c.cluster_k >= t.sm_count);
         }),
    rule("4 to 16 warps compute, 8 a multiprocessor at least",
         through<RingConfig>(&RingConfig::blocks_per_sm),
         [](const QuantizedProblem& p, const RingConfig& c) {
             const int warps = geometry(p, c).compute_warps();
             return warps >= 4 && warps <= 16 && warps * c.blocks_per_sm >= 8;
         }),
    rule("sums, x and codes must fit a thread's registers", through<RingConfig>(&RingConfig::blocks_per_sm),
         [](const QuantizedProblem& p, const RingConfig& c) {
             const RingGeometry g = geometry(p, c);
             return registers(g) <= std::min<std::int64_t>(register_share(g, c), 224);
         }),
    rule("x, the ring and the inboxes must fit shared memory, as often as blocks are resident",
         [](const QuantizedProblem& p, const RingConfig& c, const DeviceTraits& t) {
             const std::int64_t bytes = geometry(p, c).shared_bytes();
             return bytes <= t.max_shared_bytes_per_block &&
                    c.blocks_per_sm * (bytes + 1024) <= t.shared_bytes_per_sm;
         }),
    rule("stages have 4 to 48 KiB, and rings at most 192; 40 KiB a multiprocessor at least are under way",
         [](const QuantizedProblem& p, const RingConfig& c) {
             const RingGeometry g = geometry(p, c);
             const std::int64_t stage = g.stage_bytes();
             return stage >= 4 * 1024 && stage <= 50 * 1024 && stage * g.stages <= 200 * 1024 &&
                    c.blocks_per_sm * stage * g.stages >= 40 * 1024;
         }),
    rule("x passes through the ring where a block has few tiles: it comes anew for each",
         [](const RingConfig& c) { return c.x_streams == 0 || c.tiles <= 2; }),
    rule("every block of a cluster has columns for two stages, and results of its own",
         through<RingConfig>(&RingConfig::cluster_k),
         [](const QuantizedProblem& p, const RingConfig& c) {
             const RingGeometry g = geometry(p, c);
             return g.cluster_k == 1 ||
                    (g.fragments() >= g.cluster_k && g.units() >= 2 * g.cluster_k * g.stage_units());
         }),
    rule("blocks that take several tiles are all resident, and leave few multiprocessors idle",
         through<RingConfig>(&RingConfig::blocks_per_sm),
         [](const QuantizedProblem& p, const RingConfig& c, const DeviceTraits& t) {
             const std::int64_t count = blocks(p, c);
             return c.tiles == 1 || (count <= t.sm_count * c.blocks_per_sm && 4 * count >= 3 * t.sm_count);
         }),
    rule("a block takes one tile where that is at most four rounds",
         through<RingConfig>(&RingConfig::blocks_per_sm),
         [](const QuantizedProblem& p, const RingConfig& c, const DeviceTraits& t) {
             const std::int64_t count = blocks(p, c);
             return c.tiles > 1 || count <= 4 * t.sm_count * c.blocks_per_sm;
         }),
};

/// Whether wgmma_w16, which stands behind ring, offers a config that is predicted to be faster.
bool wgmma_is_faster(const Problem& problem, const RingConfig& c, const DeviceTraits& traits) {
    if (!runs_on(wgmma_w16, traits)) return false;
    const auto other = wgmma_w16.fallback(problem, traits);
    return other && allowed(problem, {&wgmma_w16, *other}, traits) &&
           wgmma_w16.predict_us(problem, *other, traits) < predict(QuantizedProblem(problem), c, traits);
}

/// The best by the cost model of a few shapes, unless wgmma_w16 has a better one.
std::optional<RingConfig> fallback(const Problem& problem, const DeviceTraits& traits) {
    const QuantizedProblem p(problem);
    if (!p.is_packed() || p.tokens > 64 || is_for_walk(p, traits)) return std::nullopt;
    struct Shape {
        std::int64_t rows, warp_rows, k_warps, stage_columns, stages;
    };
    constexpr Shape shapes[] = {{64, 16, 2, 256, 6},  {64, 32, 4, 512, 4}, {64, 32, 4, 256, 6},
                                {128, 32, 2, 256, 4}, {64, 64, 4, 512, 4}, {64, 32, 2, 256, 4},
                                {64, 16, 1, 128, 8},  {64, 32, 2, 128, 8}};
    std::vector<RingConfig> starts;
    for (const Shape& shape : shapes) {
        starts.push_back({.tokens = tokens_held(p),
                          .rows = shape.rows,
                          .warp_rows = shape.warp_rows,
                          .k_warps = shape.k_warps,
                          .stage_columns = shape.stage_columns,
                          .stages = shape.stages,
                          .programmatic = 1});
    }
    const std::vector<RingConfig> configs = combinations(
        starts, tunables,
        {&RingConfig::cluster_k, &RingConfig::tiles, &RingConfig::blocks_per_sm, &RingConfig::x_streams});
    const auto best = best_of(problem, ring, std::span<const RingConfig>(configs), traits);
    return best && wgmma_is_faster(problem, *best, traits) ? std::nullopt : best;
}

}  // namespace

const Variant ring{.name = "ring",
                   .summary =
                       "packed weights pass through a ring in shared memory that bulk copies fill, x stays "
                       "there; products by mma.sync",
                   .source = "quantized_linear/ring/kernel.cu",
                   .min_arch = {9, 0, false},
                   .tunables = tunables,
                   .constraints = constraints,
                   .kernels = ring_kernels,
                   .plan = typed<ring_plan>,
                   .fallback = typed<fallback>,
                   .access_elements = typed<ring_access_elements>,
                   .predict_us = typed<predict>};

}  // namespace hone::quantized_linear
