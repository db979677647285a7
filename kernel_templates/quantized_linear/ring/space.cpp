#include <algorithm>
#include <vector>

#include "kernel_templates/quantized_linear/ring/plan.h"
#include "kernel_templates/space.h"

namespace hone::quantized_linear {
namespace {

using namespace ring_blocks;

constexpr Tunable tunables[] = {
    {"tokens", "of a block, all of them", {8, 16, 32, 64}},
    {"rows", "results of a tile, a token", {64, 128, 256}},
    {"warp_rows", "rows of the weight that a warp multiplies", {16, 32, 64}},
    {"k_warps", "warps that share them", {1, 2, 4}},
    {"stage_columns", "columns of a stage", {128, 256, 512}},
    {"stages", "in shared memory", {3, 4, 6, 8}},
    {"cluster_k", "blocks that share the columns of a tile, and add up their sums", {1, 2, 4, 8}},
    {"tiles", "that a block takes one after another", {1, 2, 3, 4, 5, 6, 8, 10, 14, 20, 28}},
    {"blocks_per_sm", "that a multiprocessor has room for", {1, 2, 3, 4}},
    {"x_streams", "1: x passes through the ring, 0: it stays for all tiles", {0, 1}},
    {"programmatic", "1: programmatic dependent launch", {0, 1}},
};

/// Of a compute warp's thread: sums, those of the group, x and codes of 32 columns, and the rest.
std::int64_t registers(const RingGeometry& g) {
    const int fragments = g.warp_rows / 16;
    const int sums = fragments * g.token_blocks() * 4 * (g.group != 0 ? 2 : 1);
    const int zeros = g.zeros ? 2 * fragments : 0;
    return sums + 4 * g.token_blocks() + zeros + 48;
}
/// Of `tokens`, the least that holds all; of up to 64.
std::int64_t tokens_held(const QuantizedProblem& p) {
    return *std::ranges::lower_bound(tunables[block_tokens].values.span(),
                                     std::min<std::int64_t>(p.tokens, 64));
}

constexpr Constraint constraints[] = {
    {"codes of 4 or 8 bits meet x of 16, up to 64 tokens",
     [](const Problem& problem, const Config&, const DeviceTraits&) {
         const QuantizedProblem p = quantized_problem(problem);
         return p.is_packed() && p.tokens <= 64;
     }},
    {"copies are of multiples of 16 bytes at such addresses: in is a multiple of 16",
     [](const Problem& p, const Config&, const DeviceTraits&) { return quantized_problem(p).in % 16 == 0; }},
    {"a block holds all tokens, and no more than it must",
     [](const Problem& p, const Config& c, const DeviceTraits&) {
         return c[block_tokens] == tokens_held(quantized_problem(p));
     }},
    {"a stage has whole units, of 64 columns or a group, for each of the warps that share it",
     [](const Problem& p, const Config& c, const DeviceTraits&) {
         return c[stage_columns] % (geometry(p, c).unit_columns() * c[k_warps]) == 0;
     }},
    {"tiles have rows that exist; more than 64 where that leaves enough of them",
     [](const Problem& problem, const Config& c, const DeviceTraits& t) {
         const QuantizedProblem p = quantized_problem(problem);
         return c[rows] == 64 || (c[rows] / 2 < p.out && 2 * tiles(p, c) * c[cluster_k] >= t.sm_count);
     }},
    {"4 to 16 warps compute, 8 a multiprocessor at least",
     [](const Problem& p, const Config& c, const DeviceTraits&) {
         const int warps = geometry(p, c).compute_warps();
         return warps >= 4 && warps <= 16 && warps * c[blocks_per_sm] >= 8;
     }},
    {"sums, x and codes must fit a thread's registers",
     [](const Problem& p, const Config& c, const DeviceTraits&) {
         const RingGeometry g = geometry(p, c);
         return registers(g) <= std::min<std::int64_t>(register_share(g, c), 224);
     }},
    {"x, the ring and the inboxes must fit shared memory, as often as blocks are resident",
     [](const Problem& p, const Config& c, const DeviceTraits& t) {
         const std::int64_t bytes = geometry(p, c).shared_bytes();
         return bytes <= t.max_shared_bytes_per_block &&
                c[blocks_per_sm] * (bytes + 1024) <= t.shared_bytes_per_sm;
     }},
    {"stages have 4 to 48 KiB, and rings at most 192; 40 KiB a multiprocessor at least are under way",
     [](const Problem& p, const Config& c, const DeviceTraits&) {
         const RingGeometry g = geometry(p, c);
         const std::int64_t stage = g.stage_bytes();
         return stage >= 4 * 1024 && stage <= 50 * 1024 && stage * g.stages <= 200 * 1024 &&
                c[blocks_per_sm] * stage * g.stages >= 40 * 1024;
     }},
    {"x passes through the ring where a block has few tiles: it comes anew for each",
     [](const Problem&, const Config& c, const DeviceTraits&) {
         return c[x_streams] == 0 || c[cluster_tiles] <= 2;
     }},
    {"every block of a cluster has columns for two stages, and results of its own",
     [](const Problem& p, const Config& c, const DeviceTraits&) {
         const RingGeometry g = geometry(p, c);
         return g.cluster_k == 1 ||
                (g.fragments() >= g.cluster_k && g.units() >= 2 * g.cluster_k * g.stage_units());
     }},
    {"blocks that take several tiles are all resident, and leave few multiprocessors idle",
     [](const Problem& problem, const Config& c, const DeviceTraits& t) {
         const std::int64_t count = blocks(quantized_problem(problem), c);
         return c[cluster_tiles] == 1 ||
                (count <= t.sm_count * c[blocks_per_sm] && 4 * count >= 3 * t.sm_count);
     }},
    {"a block takes one tile where that is at most four rounds",
     [](const Problem& problem, const Config& c, const DeviceTraits& t) {
         const std::int64_t count = blocks(quantized_problem(problem), c);
         return c[cluster_tiles] > 1 || count <= 4 * t.sm_count * c[blocks_per_sm];
     }},
};

TensorMap x_map(const QuantizedProblem& p, const Config& c) {
    TensorMap map{.pointer = x, .dtype = p.dtype, .rank = 2, .swizzle_bytes = 128};
    map.extents[0] = static_cast<std::uint32_t>(p.in);
    map.extents[1] = static_cast<std::uint32_t>(p.tokens);
    map.stride_scalars[0] = x_stride;
    map.box[0] = block_columns;
    map.box[1] = static_cast<std::uint16_t>(c[block_tokens]);
    return map;
}

Plan plan(const Problem& problem, const Config& config, const DeviceTraits&) {
    const QuantizedProblem p = quantized_problem(problem);
    const RingGeometry g = geometry(p, config);
    Plan plan{.launch_count = 1};
    Launch& main = plan.launches[0];
    main =
        launch("quantized_linear_ring", {static_cast<std::uint32_t>(blocks(p, config)), 1, 1}, g.threads());
    main.cluster = {static_cast<std::uint32_t>(g.cluster_k), 1, 1};
    main.shared_bytes = static_cast<std::uint32_t>(g.shared_bytes());
    main.programmatic = config[programmatic] != 0;
    plan.tensor_map_count = 1;
    plan.tensor_maps[0] = x_map(p, config);
    main.args[main.arg_count++] = tensor_map_arg(0);
    return linear::normalize_first(p.dense(), plan, norm_arguments);
}

/// Whether wgmma_w16, which stands behind ring, offers a config that is predicted to be faster.
bool wgmma_is_faster(const Problem& problem, const Config& config, const DeviceTraits& traits) {
    if (!runs_on(wgmma_w16, traits)) return false;
    const auto other = wgmma_w16.fallback(problem, traits);
    return other && allowed(problem, {&wgmma_w16, *other}, traits) &&
           wgmma_w16.predict_us(problem, *other, traits) < predict(problem, config, traits);
}

/// The best by the cost model of a few shapes, unless wgmma_w16 has a better one.
std::optional<Config> fallback(const Problem& problem, const DeviceTraits& traits) {
    const QuantizedProblem p = quantized_problem(problem);
    if (!p.is_packed() || p.tokens > 64) return std::nullopt;
    struct Shape {
        std::int64_t rows, warp_rows, k_warps, stage_columns, stages;
    };
    constexpr Shape shapes[] = {{64, 16, 2, 256, 6},  {64, 32, 4, 512, 4}, {64, 32, 4, 256, 6},
                                {128, 32, 2, 256, 4}, {64, 64, 4, 512, 4}, {64, 32, 2, 256, 4},
                                {64, 16, 1, 128, 8},  {64, 32, 2, 128, 8}};
    std::vector<Config> starts;
    for (const Shape& shape : shapes) {
        Config& config = starts.emplace_back();
        config[block_tokens] = tokens_held(p);
        config[rows] = shape.rows;
        config[warp_rows] = shape.warp_rows;
        config[k_warps] = shape.k_warps;
        config[stage_columns] = shape.stage_columns;
        config[stages] = shape.stages;
        config[programmatic] = 1;
    }
    const std::vector<Config> configs =
        combinations(starts, tunables, {cluster_k, cluster_tiles, blocks_per_sm, x_streams});
    const auto best = best_of(problem, ring, configs, traits);
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
                   .plan = plan,
                   .fallback = fallback,
                   .access_elements = [](const Problem&, const Config&) { return std::int64_t{16}; },
                   .predict_us = predict};

}  // namespace hone::quantized_linear
