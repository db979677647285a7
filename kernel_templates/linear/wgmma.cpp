#include <algorithm>

#include "kernel_templates/linear/normalise.h"
#include "kernel_templates/linear/wgmma_config.h"

namespace hone::linear {
namespace {

using namespace gemm;

constexpr Tunable tunables[] = {
    {"tile_m", "rows of a tile: tokens; swapped: results a token", {64, 128, 256}},
    {"tile_n",
     "columns of a tile: results a token; swapped: tokens",
     {8, 16, 32, 64, 80, 96, 112, 128, 160, 168, 192, 224, 256}},
    {"consumers", "warpgroups that multiply", {1, 2}},
    {"ping_pong", "1: they take tiles in turn instead of sharing one", {0, 1}},
    {"blocks_per_sm", "resident blocks a multiprocessor", {1, 2}},
    {"swapped", "1: the weight is the left operand, for few tokens", {0, 1}},
    {"tail_split", "1: tiles of a last round that few blocks take are split over all of them", {0, 1}},
    {"cluster_k", "parts of a sum, added up within a cluster of blocks", {1, 2, 4, 8}},
    {"staged", "1: results leave through shared memory and the copy engine", {0, 1}},
    {"raster", "rows of tiles that are worked on together", {8, 16}},
    {"l2_hint", "1: weights leave level 2 first, x last", {0, 1}},
    {"programmatic",
     "1: programmatic dependent launch; 2: of the successor, late and beside the block",
     {0, 1, 2}},
};

/// A thread's registers, where the roles do not exchange theirs.
bool fits_registers(const LinearProblem& p, const Geometry& g) {
    const bool plain_results = p.gated || (!p.bias && !p.residual && p.activation == Activation::none);
    if (g.sums() > (plain_results ? 192 : 128)) return false;
    if (g.blocks_per_sm == 1 && g.consumers == 2) return true;
    return g.sums() + 40 <= 65536 / (g.threads() * g.blocks_per_sm);
}

constexpr Constraint constraints[] = {
    {"tensor cores multiply fp16 and bf16",
     [](const Problem& p, const Config&, const DeviceTraits&) {
         return linear_problem(p).dtype != Dtype::fp32;
     }},
    {"rows must start at multiples of 16 bytes: in and out are multiples of 8",
     [](const Problem& p, const Config&, const DeviceTraits&) {
         return linear_problem(p).in % 8 == 0 && linear_problem(p).out % 8 == 0;
     }},
    {"warpgroups take whole blocks of 64 rows; ping-pong is between two of them",
     [](const Problem& problem, const Config& c, const DeviceTraits&) {
         const LinearProblem p = linear_problem(problem);
         const Geometry g = geometry(p, c);
         return (!g.ping_pong || g.consumers == 2) &&
                g.tile_m % (block_rows * g.sharers() * (g.gated_rows() ? 2 : 1)) == 0;
     }},
    {"gate and up columns meet in one thread, and staged rows have 16 results at least",
     [](const Problem& problem, const Config& c, const DeviceTraits&) {
         const Geometry g = geometry(linear_problem(problem), c);
         return (!g.gated_columns() || g.tile_n % 16 == 0) &&
                (!g.staged || g.swapped || g.result_columns() % 16 == 0);
     }},
    {"a thread's sums must fit its registers",
     [](const Problem& problem, const Config& c, const DeviceTraits&) {
         const LinearProblem p = linear_problem(problem);
         return fits_registers(p, geometry(p, c));
     }},
    {"one consumer is for 64 rows of results; two blocks a multiprocessor have one consumer each",
     [](const Problem& problem, const Config& c, const DeviceTraits&) {
         return (c[consumers] == 1) ==
                    (c[consumers] == 1 && geometry(linear_problem(problem), c).result_rows() == 64) &&
                (c[blocks_per_sm] == 1 || c[consumers] == 1);
     }},
    {"at least three stages must fit shared memory",
     [](const Problem& problem, const Config& c, const DeviceTraits&) {
         return geometry(linear_problem(problem), c).stages() >= 3;
     }},
    {"weights are the left operand for up to 512 tokens; up to 64 then share a tile, more share tiles of 64",
     [](const Problem& problem, const Config& c, const DeviceTraits&) {
         const LinearProblem p = linear_problem(problem);
         const std::int64_t least = p.tokens <= 64 ? p.tokens : p.tokens <= 128 ? 64 : 128;
         return c[swapped] == 0 || (p.tokens <= 512 && c[tile_n] >= least);
     }},
    {"weights as the left operand: no ping-pong, and one consumer for up to 64 tokens",
     [](const Problem& problem, const Config& c, const DeviceTraits&) {
         return c[swapped] == 0 ||
                (c[ping_pong] == 0 && (c[consumers] == 1 || linear_problem(problem).tokens > 64));
     }},
    {"tiles with x as the left operand have 64 columns at least",
     [](const Problem&, const Config& c, const DeviceTraits&) { return c[swapped] != 0 || c[tile_n] >= 64; }},
    {"more than half of a tile's tokens must exist",
     [](const Problem& problem, const Config& c, const DeviceTraits&) {
         const LinearProblem p = linear_problem(problem);
         return c[swapped] != 0 ? c[tile_n] == 8 || c[tile_n] < 2 * p.tokens : c[tile_m] < 2 * p.tokens;
     }},
    {"tiles of less than 128 x 128 are for problems that such tiles cover in four rounds",
     [](const Problem& problem, const Config& c, const DeviceTraits& t) {
         const LinearProblem p = linear_problem(problem);
         const std::int64_t large = ceil_div(p.tokens, 128) * ceil_div(p.products() * p.out, 128);
         return c[swapped] != 0 || c[tile_m] * c[tile_n] >= 128 * 128 || large <= 4 * t.sm_count;
     }},
    {"a sum is split over a cluster between tiles that are shared and not staged, or in the last round",
     [](const Problem&, const Config& c, const DeviceTraits&) {
         return c[cluster_k] == 1 || (c[tail_split] == 0 && c[ping_pong] == 0 && c[staged] == 0);
     }},
    {"a sum is split over a cluster where multiprocessors would be idle, into parts of four steps at least",
     [](const Problem& problem, const Config& c, const DeviceTraits& t) {
         const LinearProblem p = linear_problem(problem);
         return c[cluster_k] == 1 || (tiles(p, geometry(p, c)) * c[cluster_k] <= resident_blocks(c, t) &&
                                      4 * c[cluster_k] <= steps(p));
     }},
    {"a last round is split that leaves half of the blocks idle, into parts that run at the same steps and "
     "share level 2",
     [](const Problem& problem, const Config& c, const DeviceTraits& t) {
         return c[tail_split] == 0 || parts_of_tail(linear_problem(problem), c, t) > 1;
     }},
    {"the parts of sums that meet in a cluster must fit the rings",
     [](const Problem& problem, const Config& c, const DeviceTraits&) {
         const Geometry g = geometry(linear_problem(problem), c);
         return c[cluster_k] == 1 || g.exchange_bytes() <= g.stages() * g.stage_bytes();
     }},
    {"whole sums go through shared memory, except those of up to 64 tokens as columns",
     [](const Problem& problem, const Config& c, const DeviceTraits&) {
         return c[staged] != 0 || c[cluster_k] > 1 ||
                (c[swapped] != 0 && linear_problem(problem).tokens <= 64);
     }},
    {"larger groups are for more than 8 rows of tiles, worked on in more than one round",
     [](const Problem& problem, const Config& c, const DeviceTraits& t) {
         const LinearProblem p = linear_problem(problem);
         const Geometry g = geometry(p, c);
         return c[raster] == 8 ||
                (tiles_across(p, g) > 8 && tiles_along(p, g) > 1 && tiles(p, g) > resident_blocks(c, t));
     }},
    {"hints are for weights that are read once: up to 256 tokens",
     [](const Problem& problem, const Config& c, const DeviceTraits&) {
         return c[l2_hint] == 0 || linear_problem(problem).tokens <= 256;
     }},
    {"early weights are for up to 256 tokens: with more, they are in the way of the call before",
     [](const Problem& problem, const Config& c, const DeviceTraits&) {
         return c[programmatic] != 1 || linear_problem(problem).tokens <= 256;
     }},
    {"a successor starts late with more than 64 tokens: with fewer, memory would wait for its first loads",
     [](const Problem& problem, const Config& c, const DeviceTraits&) {
         return c[programmatic] != 2 || linear_problem(problem).tokens > 64;
     }},
};

/// Kernel arguments behind the tensor maps.
void add_results(Launch& launch) {
    for (const int index : {bias, residual, out, workspace})
        launch.args[launch.arg_count++] = pointer_arg(index);
    for (const int index : {tokens, residual_stride, out_stride})
        launch.args[launch.arg_count++] = scalar_arg(index);
}

TensorMap matrix_map(Dtype dtype, int pointer, int stride, std::int64_t columns, std::int64_t rows,
                     int box_columns, int box_rows) {
    TensorMap map{.pointer = static_cast<std::uint8_t>(pointer),
                  .dtype = dtype,
                  .rank = 2,
                  .swizzle_bytes = static_cast<std::uint8_t>(2 * box_columns)};
    map.extents[0] = static_cast<std::uint32_t>(columns);
    map.extents[1] = static_cast<std::uint32_t>(rows);
    map.stride_scalars[0] = static_cast<std::uint8_t>(stride);
    map.box[0] = static_cast<std::uint16_t>(box_columns);
    map.box[1] = static_cast<std::uint16_t>(box_rows);
    return map;
}

/// Maps of x, weight, up and result, in the order of the kernel's parameters; the weight's stands in for
/// those that the kernel does not use.
void add_maps(Plan& plan, const LinearProblem& p, const Geometry& g) {
    Launch& launch = plan.launches[0];
    const auto add = [&](const TensorMap& map) {
        plan.tensor_maps[static_cast<std::size_t>(plan.tensor_map_count)] = map;
        launch.args[launch.arg_count++] = tensor_map_arg(plan.tensor_map_count++);
    };
    const auto add_unused = [&] { launch.args[launch.arg_count++] = tensor_map_arg(1); };
    const auto weight_map = [&](int pointer, int stride) {
        return matrix_map(p.dtype, pointer, stride, p.in, p.out, g.operands.columns, g.weight_box());
    };
    add(matrix_map(p.dtype, x, x_stride, p.in, p.tokens, g.operands.columns, g.x_box()));
    add(weight_map(weight, weight_stride));
    if (p.gated) {
        add(weight_map(up, up_stride));
    } else {
        add_unused();
    }
    if (g.staged) {
        add(matrix_map(p.dtype, out, out_stride, p.out, p.tokens, g.panel_width(),
                       g.swapped ? g.tile_n : block_rows));
    } else {
        add_unused();
    }
}

Plan plan(const Problem& problem, const Config& config, const DeviceTraits& traits) {
    const LinearProblem p = linear_problem(problem);
    const Geometry g = geometry(p, config);
    Plan plan{.launch_count = 1};
    Launch& gemm = plan.launches[0];
    gemm.kernel = "linear_wgmma";
    // Clusters have one tile each, other blocks walk.
    const std::int64_t count = tiles(p, g);
    const std::int64_t most = places(config, traits);
    const std::int64_t blocks =
        g.cluster_k > 1 ? count * g.cluster_k : std::min(count * parts_of_tail(p, config, traits), most);
    gemm.grid = {static_cast<std::uint32_t>(blocks), 1, 1};
    gemm.block = {static_cast<std::uint32_t>(g.threads()), 1, 1};
    gemm.cluster = {static_cast<std::uint32_t>(g.cluster_k), 1, 1};
    gemm.shared_bytes = static_cast<std::uint32_t>(g.shared_bytes());
    gemm.programmatic = config[programmatic] != 0;
    // The same for any number of tokens: fewer of them may leave a larger rest.
    if (config[tail_split] != 0) plan.workspace_bytes = most * g.workspace_bytes();
    add_maps(plan, p, g);
    add_results(gemm);
    return normalise_first(p, plan);
}

/// The best by the cost model of a few proven shapes of tiles.
std::optional<Config> fallback(const Problem& problem, const DeviceTraits& traits) {
    const LinearProblem p = linear_problem(problem);
    if (p.tokens <= 8) return std::nullopt;  // mma and gemv are faster
    struct Shape {
        std::int64_t tile_m, tile_n, consumers, ping_pong, blocks_per_sm, swapped;
    };
    const std::int64_t rows = p.gated ? 128 : 64;  // of 64 rows of results, where the weight is left
    const Shape shapes[] = {{rows, 16, 1, 0, 2, 1},  {rows, 32, 1, 0, 2, 1}, {rows, 64, 1, 0, 2, 1},
                            {rows, 128, 1, 0, 1, 1}, {64, 128, 2, 1, 1, 0},  {128, 128, 2, 0, 1, 0},
                            {128, 256, 2, 0, 1, 0}};
    std::vector<Config> configs;
    for (const Shape& shape : shapes) {
        for (const std::int64_t parts_of_sum : tunables[cluster_k].values.span()) {
            Config& config = configs.emplace_back();
            config[tile_m] = shape.tile_m;
            config[tile_n] = shape.tile_n;
            config[consumers] = shape.consumers;
            config[ping_pong] = shape.ping_pong;
            config[blocks_per_sm] = shape.blocks_per_sm;
            config[swapped] = shape.swapped;
            config[tail_split] = 0;
            config[cluster_k] = parts_of_sum;
            config[staged] = parts_of_sum == 1 ? 1 : 0;
            config[raster] = 8;
            config[l2_hint] = p.tokens <= 64 ? 1 : 0;
            config[programmatic] = p.tokens <= 128 ? 1 : 2;
        }
    }
    return best_of(problem, wgmma, configs, traits);
}

}  // namespace

const Variant wgmma{.name = "wgmma",
                    .summary = "warpgroup tensor cores fed by tensor copies, one warpgroup for the copies",
                    .source = "linear/wgmma.cu",
                    .min_arch = {9, 0, true},
                    .tunables = tunables,
                    .constraints = constraints,
                    .plan = plan,
                    .fallback = fallback,
                    .access_elements = [](const Problem&, const Config&) { return std::int64_t{8}; },
                    .predict_us = predict};

}  // namespace hone::linear
