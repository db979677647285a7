#include <algorithm>
#include <cmath>
#include <vector>

#include "kernel_templates/quantized_linear/quantized_linear.h"
#include "kernel_templates/quantized_linear/ring_geometry.cuh"

namespace hone::quantized_linear {
namespace {

enum Index : std::size_t {
    block_tokens,
    rows,
    warp_rows,
    k_warps,
    stage_columns,
    stages,
    cluster_k,
    cluster_tiles,
    blocks_per_sm,
    x_streams,
    programmatic
};

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

RingGeometry geometry(const QuantizedProblem& p, const Config& c) {
    const bool groups = p.format == Format::w4a16 && p.group != 0;
    return {.bits = p.bits(),
            .group = groups ? static_cast<int>(p.group) : 0,
            .zeros = groups && p.zeros,
            .products = static_cast<int>(p.products()),
            .in = static_cast<int>(p.in),
            .tokens = static_cast<int>(c[block_tokens]),
            .rows = static_cast<int>(c[rows]),
            .warp_rows = static_cast<int>(c[warp_rows]),
            .k_warps = static_cast<int>(c[k_warps]),
            .stage_columns = static_cast<int>(c[stage_columns]),
            .stages = static_cast<int>(c[stages]),
            .cluster_k = static_cast<int>(c[cluster_k]),
            .x_streams = c[x_streams] != 0};
}
RingGeometry geometry(const Problem& problem, const Config& c) {
    return geometry(quantized_problem(problem), c);
}

std::int64_t tiles(const QuantizedProblem& p, const Config& c) { return ceil_div(p.out, c[rows]); }
std::int64_t blocks(const QuantizedProblem& p, const Config& c) {
    return ceil_div(tiles(p, c), c[cluster_tiles]) * c[cluster_k];
}

/// Of a compute warp's thread: sums, those of the group, x and codes of 32 columns, and the rest.
std::int64_t registers(const RingGeometry& g) {
    const int fragments = g.warp_rows / 16;
    const int sums = fragments * g.token_blocks() * 4 * (g.group != 0 ? 2 : 1);
    const int zeros = g.zeros ? 2 * fragments : 0;
    return sums + 4 * g.token_blocks() + zeros + 48;
}
/// What a thread may have: a quarter of a multiprocessor has a quarter of the registers, for whole warps.
std::int64_t register_share(const RingGeometry& g, const Config& c) {
    const std::int64_t quarters = ceil_div(g.threads(), 128);
    return 65536 / (128 * quarters * c[blocks_per_sm]) / 8 * 8;
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
    return linear::normalise_first(p.dense(), plan, norm_arguments);
}

/// Cycles that a multiprocessor needs for 16 rows x 64 columns: of its four ports for instructions, of shared
/// memory's 128 bytes a cycle, and of the tensor cores, which mma.sync of so few tokens leaves half idle.
double block_cycles(const QuantizedProblem& p, const RingGeometry& g) {
    const double tokens = g.token_blocks();
    const double fragments = g.warp_rows / 16;
    const double widen = p.format == Format::w4a16 ? 4 * 11.0 : 4 * 14.0;
    const double group_ends = g.group == 0 ? 0.0 : std::max(1.0, 64.0 / g.group) * (8 + 4 * tokens);
    const double instructions = widen + 6 * tokens + group_ends + (20 + 4 * tokens) / fragments;
    const double shared_bytes = 2.2 * 128 * g.bits + tokens * 1024 / fragments;
    return std::max({instructions / 3.1, shared_bytes / 110, 4 * tokens / 0.34});
}

/// How often a block finds room on a multiprocessor. Of registers what the compiler takes, of a compute warp
/// with sums and codes; a stage that is one unit of each warp is unrolled.
double room(const RingGeometry& g, const Config& c, const DeviceTraits& traits) {
    const std::int64_t fragments = g.warp_rows / 16;
    const std::int64_t sums = fragments * g.token_blocks() * (g.group != 0 ? 8 : 4);
    const std::int64_t taken =
        22 + sums + 6 * g.token_blocks() + 8 * fragments + (g.stage_units() == g.k_warps ? 6 : 0);
    const std::int64_t given = std::min(ceil_div(taken, 8) * 8, register_share(g, c));
    const std::int64_t warps = 4 * ceil_div(g.threads(), 128);
    const std::int64_t by_shared = traits.shared_bytes_per_sm / (g.shared_bytes() + 1024);
    return static_cast<double>(
        std::max(c[blocks_per_sm], std::min({traits.registers_per_sm / (given * 32 * warps), by_shared,
                                             traits.max_threads_per_sm / (32 * warps)})));
}

/// Where blocks stand.
struct Spread {
    double sms;       ///< that take part
    double room;      ///< blocks that fit a multiprocessor
    double busiest;   ///< blocks of the busiest multiprocessor
    double together;  ///< of them at once
    double rounds;
    double ahead;  ///< share of the next call's blocks that find room beside this one's
};
Spread spread(const RingGeometry& g, const Config& c, double count, const DeviceTraits& traits) {
    Spread s{};
    // Clusters of more than two do not find room on all of a chip: on 120 of an H100's 132.
    s.sms = g.cluster_k > 2 ? std::floor(0.91 * traits.sm_count) : traits.sm_count;
    s.room = room(g, c, traits);
    s.busiest = std::ceil(count / s.sms);
    s.together = std::min(s.busiest, s.room);
    s.rounds = std::ceil(count / (s.sms * s.room));
    if (c[programmatic] == 0) return s;
    // Blocks that come while those of the call before still run double up where there is room, instead of
    // spreading evenly: often enough that six tenths of a block are expected.
    if (s.room > s.busiest) s.busiest += 0.6;
    s.ahead = std::clamp((s.sms * s.room - count) / count, 0.0, 0.6);
    return s;
}

/// Whatever is slowest of memory, the busiest multiprocessor's draw, what is under way in the rings, the
/// products, and level 2.
double body_us(const QuantizedProblem& p, const RingGeometry& g, const Spread& s, double count,
               double tile_count, const DeviceTraits& traits) {
    const double cycles_per_us = 0.886e-3 * traits.sm_clock_khz;
    const double memory_us =
        (p.weight_bytes() + p.x_bytes() + p.out_bytes()) / (0.94e-6 * traits.memory_bytes_per_s);
    const double columns = static_cast<double>(g.most_units()) * g.unit_columns();
    const double weight_bytes = tile_count * g.most_units() * g.unit_bytes();
    // x that passes through the ring comes anew for each tile; tokens that do not exist are not read.
    const double x_bytes = g.x_streams ? tile_count * columns * 2 * static_cast<double>(p.tokens) : 0.0;
    // A multiprocessor takes in 50 KB/us of weights; x comes from near and counts half.
    const double draw_us = s.busiest * (weight_bytes + 0.5 * x_bytes) / 50e3;
    const double ring_bytes = static_cast<double>(g.stages) * g.stage_units() * g.unit_bytes();
    const double latency_us = 1.1 * s.busiest * weight_bytes / (s.together * ring_bytes);
    // Warps wait for products that follow each other: few of them do not fill the ports.
    const double chains =
        g.compute_warps() * s.together * std::min(4.0, g.warp_rows / 16.0 * g.token_blocks());
    const double pieces = tile_count * g.products * g.rows / 16.0 * columns / 64;
    const double compute_us =
        s.busiest * pieces * block_cycles(p, g) * std::max(1.0, 10 / chains) / cycles_per_us;
    const double level2_us = (p.weight_bytes() + count * x_bytes) / (6.5e6 * std::min(1.0, count / s.sms));
    double sum = 0;
    for (const double us : {memory_us, draw_us, latency_us, compute_us, level2_us}) sum += std::pow(us, 4);
    return std::pow(sum, 0.25);
}

/// The body; the wait for x that stays; the way of the sums; and what programmatic launch does not hide.
/// Constants fitted to 3500 configs of 13 problems on an H100: errors of 4 to 8 %.
double predict(const Problem& problem, const Config& config, const DeviceTraits& traits) {
    const QuantizedProblem p = quantized_problem(problem);
    const RingGeometry g = geometry(p, config);
    const double cycles_per_us = 0.886e-3 * traits.sm_clock_khz;
    const double count = static_cast<double>(blocks(p, config));
    const double tile_count =
        static_cast<double>(ceil_div(tiles(p, config), blocks(p, config) / config[cluster_k]));
    const Spread s = spread(g, config, count, traits);

    const double kept_bytes = g.x_streams ? 0.0
                                          : static_cast<double>(g.most_units()) * g.unit_columns() * 2 *
                                                static_cast<double>(p.tokens);
    const double x_us = 0.6 * s.together * kept_bytes / 50e3;
    // Fragments are handed over one after another, and a cluster's blocks meet.
    const double exchange_us = 30.0 * g.fragments() * g.products * g.k_warps / cycles_per_us;
    const double cluster_us = g.cluster_k > 1 ? 0.45 : 0.0;
    // What x waits behind, and the first stage of a call that found no room before.
    const double fill_us = 0.0028 * std::max(0.0, 1e-3 * g.stages * g.stage_bytes() - 62);
    // A block's start and end are not hidden where the next one waits for its room.
    const double rounds_us = 3.7 * (s.rounds - 1) / s.room;
    const double launch_us = config[programmatic] != 0 ? 0.8 + 1.3 * (1 - s.ahead) : 3.7;
    return body_us(p, g, s, count, tile_count, traits) + x_us + exchange_us + cluster_us + fill_us +
           rounds_us + 0.13 * (tile_count - 1) + launch_us + linear::normalise_us(p.dense(), traits);
}

/// The best by the cost model of a few shapes.
std::optional<Config> fallback(const Problem& problem, const DeviceTraits& traits) {
    const QuantizedProblem p = quantized_problem(problem);
    if (!p.is_packed() || p.tokens > 64) return std::nullopt;
    struct Shape {
        std::int64_t rows, warp_rows, k_warps, stage_columns, stages;
    };
    constexpr Shape shapes[] = {{64, 16, 2, 256, 6},  {64, 32, 4, 512, 4}, {64, 32, 4, 256, 6},
                                {128, 32, 2, 256, 4}, {64, 64, 4, 512, 4}, {64, 32, 2, 256, 4},
                                {64, 16, 1, 128, 8},  {64, 32, 2, 128, 8}};
    std::vector<Config> configs;
    for (const Shape& shape : shapes) {
        for (const std::int64_t sharers : tunables[cluster_k].values.span()) {
            for (const std::int64_t count : tunables[cluster_tiles].values.span()) {
                for (const std::int64_t resident : tunables[blocks_per_sm].values.span()) {
                    for (const std::int64_t streams : tunables[x_streams].values.span()) {
                        Config& config = configs.emplace_back();
                        config[block_tokens] = tokens_held(p);
                        config[rows] = shape.rows;
                        config[warp_rows] = shape.warp_rows;
                        config[k_warps] = shape.k_warps;
                        config[stage_columns] = shape.stage_columns;
                        config[stages] = shape.stages;
                        config[cluster_k] = sharers;
                        config[cluster_tiles] = count;
                        config[blocks_per_sm] = resident;
                        config[x_streams] = streams;
                        config[programmatic] = 1;
                    }
                }
            }
        }
    }
    return best_of(problem, ring, configs, traits);
}

}  // namespace

const Variant ring{.name = "ring",
                   .summary =
                       "packed weights pass through a ring in shared memory that bulk copies fill, x stays "
                       "there; products by mma.sync",
                   .source = "quantized_linear/ring.cu",
                   .min_arch = {9, 0, false},
                   .tunables = tunables,
                   .constraints = constraints,
                   .plan = plan,
                   .fallback = fallback,
                   .access_elements = [](const Problem&, const Config&) { return std::int64_t{16}; },
                   .predict_us = predict};

}  // namespace hone::quantized_linear
