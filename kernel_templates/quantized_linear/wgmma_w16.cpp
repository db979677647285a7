#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "kernel_templates/linear/wgmma_rules.h"
#include "kernel_templates/quantized_linear/quantized_linear.h"
#include "kernel_templates/quantized_linear/wgmma_w16_stage.cuh"

namespace hone::quantized_linear {
namespace {

using namespace linear::gemm;

// In linear's order (linear/wgmma_config.h), whose plans and schedules these are.
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
constexpr std::size_t stages_together = linear::gemm::programmatic + 1;

Geometry geometry(const QuantizedProblem& p, const Config& config) {
    Geometry g = linear::gemm::geometry(p.dense(), config);
    g.operands =
        w16::Stage{.bits = p.bits(), .group = static_cast<int>(p.group), .zeros = p.zeros}.operands();
    return g;
}
Geometry geometry(const Problem& problem, const Config& config) {
    return geometry(quantized_problem(problem), config);
}

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
    {"up to four blocks of rows and stages are worked on together: more instructions than are kept at hand",
     [](const Problem& problem, const Config& c, const DeviceTraits&) {
         return geometry(problem, c).row_blocks() * c[stages_together] <= 4;
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
    return linear::normalise_first(p.dense(), plan, norm_arguments);
}

/// The largest of what goes on side by side, and somewhat more where several are near it.
double soft_maximum(std::initializer_list<double> parts) {
    double sum = 0;
    for (const double part : parts) sum += part * part * part * part;
    return std::sqrt(std::sqrt(sum));
}

/// Copies that a stage takes: x, and of each block of rows its codes, scales and zero points.
double copies(const QuantizedProblem& p, const Geometry& g) {
    const int of_rows = 1 + (g.extra_bytes() > 0 ? 1 : 0) + (g.extra_bytes() > 0 && p.zeros ? 1 : 0);
    return 1.0 + of_rows * g.tile_m / block_rows;
}

/// Cycles of one stage of `together` blocks of a multiprocessor, which work on `joined` of them without a
/// pause: those of the tensor cores; of shared memory's port, 128 bytes each (copies come in; every
/// instruction reads all rows of x, every thread its codes); of the schedulers, which issue the widening; of
/// a warpgroup that waits between its stages; of the thread that issues the copies; and those until a stage
/// that is free again is full, as far as the ring is not deep enough to hide them. Fitted to measurements of
/// 15 problems on an H100 (docs/performance.md), as are the constants of predict.
double stage_cycles(const QuantizedProblem& p, const Geometry& g, double together, double joined) {
    const double blocks = static_cast<double>(g.tile_m) / block_rows;
    const double product = 2.0 * g.tile_n;
    const double port = (g.stage_bytes() + g.left_bytes() + blocks * 4 * 32.0 * g.tile_n) / 128;
    const double widen = p.bits() == 8 ? 200 : 238;
    const double alone = g.row_blocks() * (product + 47) * (g.ping_pong ? 2 : 1) + 73 / joined;
    const double issue = copies(p, g) * 43 + 200;
    const double refill = (764 + together * g.stage_bytes() / 108) / std::max(1.0, g.stages() - joined - 1);
    return soft_maximum({1.015 * together * blocks * product, 1.07 * together * port,
                         together * blocks * widen, alone, issue, refill});
}

/// Microseconds between the last product of a tile and the first of the block's next one.
double epilogue_us(const QuantizedProblem& p, const Geometry& g) {
    const double size = static_cast<double>(g.result_rows() * g.result_columns()) / (128.0 * 256.0);
    const double work = 1.0 + (p.activation != Activation::none ? 1.0 : 0.0) + (p.residual ? 2.0 : 0.0);
    return (g.ping_pong ? 0.3 : 1.85) * size * work;
}

/// Rounds of tiles against the time that memory needs for the weights, and the time in which they can be
/// drawn; plus what a call costs before and after. Built as linear's model (linear/wgmma_cost.cpp).
double predict(const Problem& problem, const Config& config, const DeviceTraits& traits) {
    const QuantizedProblem p = quantized_problem(problem);
    const Geometry g = geometry(p, config);
    const double jobs = static_cast<double>(tiles(p.dense(), g) * config[cluster_k]);
    const double resident = static_cast<double>(resident_blocks(config, traits));
    const auto parts = static_cast<double>(parts_of_tail(p.dense(), config, traits));
    const double rounds = parts > 1 ? std::floor(jobs / resident) + 1 / parts : std::ceil(jobs / resident);
    const double at_once = std::min(jobs * parts, resident);
    const double together = std::ceil(at_once / traits.sm_count);
    const double busy = std::min(1.0, at_once / traits.sm_count);
    const double part_steps =
        std::ceil(static_cast<double>(steps(p.dense())) / static_cast<double>(config[cluster_k]));

    const double cycles_per_us = (busy > 0.5 ? 0.896e-3 : 1e-3) * traits.sm_clock_khz;
    const double compute_us = rounds * part_steps *
                              stage_cycles(p, g, together, static_cast<double>(config[stages_together])) /
                              cycles_per_us;
    const double bytes_per_us = 0.906e-6 * traits.memory_bytes_per_s;
    const double memory_us = (p.weight_bytes() + p.x_bytes() + p.out_bytes()) / bytes_per_us;
    // What a multiprocessor can draw at once: a stage comes a microsecond after it was asked for.
    const double in_flight =
        traits.sm_count * busy * together * g.stages() * (g.left_bytes() + g.extra_bytes());
    const double draw_us = p.weight_bytes() * 1.34 / in_flight;
    const double body_us = soft_maximum({compute_us, memory_us, draw_us});

    double rest_us = 2.1 + std::ceil(rounds) * epilogue_us(p, g) + linear::normalise_us(p.dense(), traits);
    if (config[cluster_k] > 1)
        rest_us += 0.94 * static_cast<double>(config[cluster_k]) + g.partial_bytes() / 13.5 / cycles_per_us;
    if (parts > 1) rest_us += 2.2 + parts * g.partial_bytes() / 18.0 / cycles_per_us;
    // Early weights help as long as they are most of what is read; hints, where no weight is read twice.
    const double early = config[programmatic] != 1 ? 0.0 : p.tokens <= 64 ? -0.6 : -0.3;
    const double hint = config[l2_hint] != 0 && jobs <= resident ? -0.02 * body_us : 0.0;
    const double groups = config[raster] > 8 ? 0.005 * body_us : 0.0;
    return body_us + rest_us + early + hint + groups + (config[staged] != 0 && p.tokens <= 64 ? 0.05 : 0.0);
}

/// The best by the cost model of a few shapes of tiles.
std::optional<Config> fallback(const Problem& problem, const DeviceTraits& traits) {
    const QuantizedProblem p = quantized_problem(problem);
    if (p.tokens <= 8) return std::nullopt;  // memory is faster than these tiles: the others
    struct Shape {
        std::int64_t tile_m, tile_n, consumers, blocks_per_sm;
    };
    const std::int64_t rows = 64 * p.products();  // of one warpgroup
    const Shape shapes[] = {{rows, 16, 1, 2}, {rows, 32, 1, 2}, {rows, 64, 1, 2}, {rows, 64, 1, 1},
                            {256, 16, 2, 1},  {256, 64, 2, 1},  {128, 64, 2, 1},  {rows, 128, 1, 1},
                            {128, 128, 2, 1}, {256, 128, 2, 1}, {128, 256, 2, 1}};
    std::vector<Config> configs;
    for (const Shape& shape : shapes) {
        for (const std::int64_t parts_of_sum : tunables[cluster_k].values.span()) {
            Config& config = configs.emplace_back();
            config[tile_m] = shape.tile_m;
            config[tile_n] = shape.tile_n;
            config[consumers] = shape.consumers;
            config[blocks_per_sm] = shape.blocks_per_sm;
            config[swapped] = 1;
            config[cluster_k] = parts_of_sum;
            config[staged] = parts_of_sum == 1 ? 1 : 0;
            config[raster] = 8;
            config[l2_hint] = p.tokens <= 64 ? 1 : 0;
            config[programmatic] = p.tokens <= 128 ? 1 : 2;
            config[stages_together] = 2;
        }
    }
    return linear::best_of(problem, wgmma_w16, configs, traits);
}

}  // namespace

const Variant wgmma_w16{
    .name = "wgmma_w16",
    .summary = "warpgroup tensor cores, weights widened to 16 bits in registers on their way from the ring",
    .source = "quantized_linear/wgmma_w16.cu",
    .min_arch = {9, 0, true},
    .tunables = tunables,
    .constraints = constraints,
    .plan = plan,
    .fallback = fallback,
    .access_elements = [](const Problem&, const Config&) { return std::int64_t{16}; },
    .predict_us = predict};

}  // namespace hone::quantized_linear
