#include <algorithm>

#include "kernel_templates/linear/wgmma/rules.h"
#include "kernel_templates/quantized_linear/wgmma_w16/plan.h"
#include "kernel_templates/space.h"

namespace hone::quantized_linear {
namespace {

using namespace linear::gemm;
using namespace w16_config;

constexpr Tunable tunables[] = {
    {"tile_m", "rows of a tile: of the weight", {64, 128, 192, 256}},
    {"tile_n", "columns of a tile: tokens", {8, 16, 24, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256}},
    {"consumers", "warpgroups that multiply", {1, 2, 3, 4}},
    {"ping_pong", "1: they take tiles in turn instead of sharing one", {0, 1}},
    {"blocks_per_sm", "resident blocks a multiprocessor", {1, 2, 3}},
    {"swapped", "the weight is the left operand", {1}},
    {"tail_split", "1: tiles of a last round that few blocks take are split over all of them", {0, 1}},
    {"cluster_k", "parts of a sum, added up within a cluster of blocks", {1, 2, 4, 8}},
    {"staged", "1: results leave through shared memory and the copy engine", {0, 1}},
    {"raster", "rows of tiles that are worked on together", {8, 16}},
    {"l2_hint", "1: weights leave level 2 first, x last", {0, 1}},
    {"programmatic",
     "1: programmatic dependent launch; 2: of the successor, late and beside the block",
     {0, 1, 2}},
    {"stages_together", "stages between whose products the tensor cores do not wait", {1, 2, 4}},
};

/// A consumer's sums, fragments, codes and addresses, or parts that are added to the sums, against what its
/// thread has.
bool fits_registers(const QuantizedProblem& p, const Geometry& g, bool adds_parts) {
    const int used = g.sums() + 64 + (p.gated ? 16 : 0) + (p.zeros ? 8 : 0) + (adds_parts ? 16 : 0);
    // An instruction's sums must fit what the launch gives, too.
    const w16::Registers registers = w16::registers_of(g);
    return used <= registers.consumer && g.tile_n / 2 + 30 <= registers.launched;
}

linear::LinearProblem dense(const Problem& problem) { return quantized_problem(problem).dense(); }

constexpr Constraint own_constraints[] = {
    {"codes of 4 or 8 bits that stand in blocks are multiplied with 16-bit x",
     [](const Problem& p, const Config&, const DeviceTraits&) { return quantized_problem(p).is_packed(); }},
    {"codes are copied 16 bytes at a time, and rows of x and of results start there: in and out are "
     "multiples of 16",
     [](const Problem& p, const Config&, const DeviceTraits&) {
         return quantized_problem(p).in % 16 == 0 && quantized_problem(p).out % 16 == 0;
     }},
    {"warpgroups take one or two blocks of 64 rows, of gate and up one each; ping-pong is between two "
     "warpgroups",
     [](const Problem& problem, const Config& c, const DeviceTraits&) {
         const Geometry g = geometry(problem, c);
         return (!g.ping_pong || g.consumers == 2) && g.tile_m % (64 * g.sharers()) == 0 &&
                g.row_blocks() <= 2 && (!g.gated || g.row_blocks() == 2);
     }},
    {"a thread's sums, fragments and codes must fit its registers",
     [](const Problem& problem, const Config& c, const DeviceTraits&) {
         return fits_registers(quantized_problem(problem), geometry(problem, c), c[tail_split] != 0);
     }},
    {"at least three stages must fit shared memory, and two beside those that are worked on together",
     [](const Problem& problem, const Config& c, const DeviceTraits&) {
         return geometry(problem, c).stages() >= std::max<std::int64_t>(3, c[stages_together] + 2);
     }},
    {"each tile of tokens widens its weights anew: up to 64 tokens share a tile, more share tiles of 64, "
     "many of 128",
     [](const Problem& problem, const Config& c, const DeviceTraits&) {
         const std::int64_t count = quantized_problem(problem).tokens;
         return c[tile_n] >= (count <= 64 ? count : count <= 128 ? 64 : 128);
     }},
    {"ping-pong hides the end of a tile behind the next one: with tiles of 64 tokens at least, worked on in "
     "more than one round",
     [](const Problem& problem, const Config& c, const DeviceTraits& t) {
         const QuantizedProblem p = quantized_problem(problem);
         return c[ping_pong] == 0 ||
                (c[tile_n] >= 64 && tiles(p.dense(), geometry(p, c)) > resident_blocks(c, t));
     }},
    {"the parts of sums that meet in a cluster must fit the rings",
     [](const Problem& problem, const Config& c, const DeviceTraits&) {
         const Geometry g = geometry(problem, c);
         return c[cluster_k] == 1 || g.exchange_bytes() <= g.stages() * g.stage_bytes();
     }},
};
constexpr auto constraints = joined(own_constraints, schedule_rules<dense>);

/// Maps of x and of the result, the kernel's last parameters; where it does not store by the copy engine, x's
/// stands in.
void add_maps(Plan& plan, const QuantizedProblem& p, const Geometry& g) {
    Launch& product = plan.launches[0];
    plan.tensor_maps[0] = matrix_map(p.dtype, x, x_stride, p.in, p.tokens, g.operands.columns, g.x_box());
    plan.tensor_map_count = 1;
    product.args[product.arg_count++] = tensor_map_arg(0);
    if (g.staged)
        plan.tensor_maps[static_cast<std::size_t>(plan.tensor_map_count++)] =
            matrix_map(p.dtype, out, out_stride, p.out, p.tokens, g.panel_width(), g.tile_n);
    product.args[product.arg_count++] = tensor_map_arg(plan.tensor_map_count - 1);
}

Plan plan(const Problem& problem, const Config& config, const DeviceTraits& traits) {
    const QuantizedProblem p = quantized_problem(problem);
    const Geometry g = geometry(p, config);
    // Clusters have one tile each, other blocks walk.
    const std::int64_t count = tiles(p.dense(), g);
    const std::int64_t most = places(config, traits);
    const std::int64_t blocks = g.cluster_k > 1
                                    ? count * g.cluster_k
                                    : std::min(count * parts_of_tail(p.dense(), config, traits), most);
    Plan plan{.launch_count = 1};
    Launch& product = plan.launches[0];
    product = launch("quantized_linear_wgmma_w16", {static_cast<std::uint32_t>(blocks), 1, 1}, g.threads());
    product.cluster = {static_cast<std::uint32_t>(g.cluster_k), 1, 1};
    product.shared_bytes = static_cast<std::uint32_t>(g.shared_bytes());
    product.programmatic = config[programmatic] != 0;
    // The same for any number of tokens: fewer of them may leave a larger rest.
    if (config[tail_split] != 0) plan.workspace_bytes = most * g.workspace_bytes();
    add_maps(plan, p, g);
    return linear::normalize_first(p.dense(), plan, norm_arguments);
}

/// The best by the cost model of a few shapes of tiles.
std::optional<Config> fallback(const Problem& problem, const DeviceTraits& traits) {
    const QuantizedProblem p = quantized_problem(problem);
    if (p.tokens <= 8) return std::nullopt;  // memory is faster than these tiles: the others
    struct Shape {
        std::int64_t tile_m, consumers, blocks_per_sm;
    };
    const std::int64_t rows = 64 * p.products();  // of one warpgroup
    const Shape shapes[] = {{rows, 1, 2}, {rows, 1, 1}, {128, 2, 1}, {192, 3, 1}, {256, 2, 1}};
    std::vector<Config> starts;
    for (const Shape& shape : shapes) {
        Config& config = starts.emplace_back();
        config[tile_m] = shape.tile_m;
        config[consumers] = shape.consumers;
        config[blocks_per_sm] = shape.blocks_per_sm;
        config[swapped] = 1;
        config[raster] = 8;
        config[l2_hint] = p.tokens <= 64 ? 1 : 0;
        config[programmatic] = p.tokens <= 128 ? 1 : 2;
    }
    std::vector<Config> configs =
        combinations(starts, tunables, {tile_n, cluster_k, tail_split, stages_together});
    for (Config& config : configs) config[staged] = config[cluster_k] == 1 ? 1 : 0;
    return linear::best_of(problem, wgmma_w16, configs, traits);
}

}  // namespace

const Variant wgmma_w16{
    .name = "wgmma_w16",
    .summary = "warpgroup tensor cores, weights widened to 16 bits in registers on their way from the ring",
    .source = "quantized_linear/wgmma_w16/kernel.cu",
    .min_arch = {9, 0, true},
    .tunables = tunables,
    .constraints = constraints,
    .plan = plan,
    .fallback = fallback,
    .access_elements = [](const Problem&, const Config&) { return std::int64_t{16}; },
    .predict_us = predict};

}  // namespace hone::quantized_linear
