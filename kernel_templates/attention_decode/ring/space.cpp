#include <vector>

#include "kernel_templates/attention_decode/attention_decode.h"

namespace hone::attention_decode {
namespace {

enum Index : std::size_t {
    rows,
    warps,
    unit,
    stages,
    producers,
    cluster,
    join,
    side_by_side,
    blocks_per_sm,
};

constexpr Tunable tunables[] = {
    {"rows", "rows of a block: query tokens times heads that share a key-value head", {8, 16}},
    {"warps", "that compute", {4, 6, 8}},
    {"unit", "tokens of a stage", {16, 32, 64}},
    {"stages", "in shared memory", {4, 6, 8, 12, 16}},
    {"producers", "warps that copy with cp.async; 0: the copy engine", {0, 4}},
    {"cluster", "blocks that share a list of rows; 1: lists are cut anywhere", {1, 2, 4, 8, 16}},
    {"join", "of lists that were cut: 0 a second launch, 1 the last block", {0, 1}},
    {"side_by_side", "1: blocks beside each other read neighbouring heads of the same tokens", {0, 1}},
    {"blocks_per_sm", "resident blocks a multiprocessor", {1, 2}},
};

Ring shape(const DecodeProblem& p, const Config& c) {
    return {.geometry = {.group = static_cast<int>(p.group()),
                         .kv_heads = static_cast<int>(p.kv_heads),
                         .head_dim = static_cast<int>(p.head_dim),
                         .q_tokens = static_cast<int>(p.q_tokens),
                         .cache_bytes = static_cast<int>(p.cache_element_bytes()),
                         .rows_a_block = static_cast<int>(c[rows]),
                         .warps = static_cast<int>(c[warps]),
                         .cluster = static_cast<int>(c[cluster]),
                         .side_by_side = c[side_by_side] != 0},
            .page_size = static_cast<int>(p.page_size),
            .unit = static_cast<int>(c[unit]),
            .stages = static_cast<int>(c[stages]),
            .producers = static_cast<int>(c[producers])};
}

Cut cut(const DecodeProblem& p, const Config& c) {
    return {.geometry = shape(p, c).geometry,
            .unit = c[unit],
            .blocks_per_sm = c[blocks_per_sm],
            .last_block = c[join] != 0};
}

/// Of a compute warp's thread: sums, the query, and what a step of a unit needs besides.
std::int64_t held_registers(const DecodeProblem& p, const Config& c) {
    const std::int64_t row_blocks = ceil_div(shape(p, c).geometry.block_rows(), 8);
    const std::int64_t column_blocks = ceil_div(p.head_dim, 16);
    return row_blocks * 6 * column_blocks + row_blocks * c[unit] / 2 + (p.fp8_cache ? 52 : 44);
}

constexpr Constraint constraints[] = {
    {"tensor cores multiply fp16 and bf16, in heads of whole accesses of 16 bytes",
     [](const Problem& p, const Config&, const DeviceTraits&) { return has_wide_rows(decode_problem(p)); }},
    {"a block has 16 rows where there are more than 8",
     [](const Problem& p, const Config& c, const DeviceTraits&) {
         return rows_exist(decode_problem(p), c[rows], 8);
     }},
    {"a stage is always filled by the same warp and taken by the same warp",
     [](const Problem&, const Config& c, const DeviceTraits&) {
         return c[stages] % c[warps] == 0 && (c[producers] == 0 || c[stages] % c[producers] == 0);
     }},
    {"the copy engine takes pages of multiples of 8 tokens that fill units, or that units fill",
     [](const Problem& p, const Config& c, const DeviceTraits&) {
         return c[producers] != 0 || shape(decode_problem(p), c).has_boxes();
     }},
    {"the ring and the warps' sums must fit shared memory, as often as blocks are resident",
     [](const Problem& p, const Config& c, const DeviceTraits& t) {
         const std::int64_t bytes = shape(decode_problem(p), c).shared_bytes();
         return bytes <= t.max_shared_bytes_per_block &&
                c[blocks_per_sm] * (bytes + 1024) <= t.shared_bytes_per_sm;
     }},
    {"16 KiB a block and 32 KiB a multiprocessor at least are under way",
     [](const Problem& problem, const Config& c, const DeviceTraits&) {
         const Ring ring = shape(decode_problem(problem), c);
         const std::int64_t bytes = ring.stages * ring.stage_bytes();
         return bytes >= 16 * 1024 && c[blocks_per_sm] * bytes >= 32 * 1024;
     }},
    {"sums and query must fit a thread's registers",
     [](const Problem& problem, const Config& c, const DeviceTraits&) {
         const DecodeProblem p = decode_problem(problem);
         // A quarter of a multiprocessor has a quarter of the registers, for whole warps.
         const std::int64_t quarters = ceil_div(shape(p, c).threads(), 128);
         const std::int64_t share = 65536 / (128 * quarters * c[blocks_per_sm]) / 8 * 8;
         return held_registers(p, c) <= std::min<std::int64_t>(share, 232);
     }},
    {"a cluster does all for its list: nothing is left to join, and lists do not stand side by side",
     [](const Problem&, const Config& c, const DeviceTraits&) {
         return c[cluster] == 1 || (c[join] == 0 && c[side_by_side] == 0);
     }},
    {"clusters are for lists that leave multiprocessors idle, and units for each of their blocks",
     [](const Problem& problem, const Config& c, const DeviceTraits& t) {
         const DecodeProblem p = decode_problem(problem);
         return c[cluster] == 1 || (blocks(p, cut(p, c), t) <= t.sm_count * c[blocks_per_sm] &&
                                    c[cluster] * c[unit] <= p.tokens_seen());
     }},
    {"lists stand side by side where there are several, each with a block",
     [](const Problem& p, const Config& c, const DeviceTraits& t) {
         return lists_fit_side_by_side(decode_problem(p), cut(decode_problem(p), c), t);
     }},
    {"units of more than 16 tokens are for sequences that have more than half of them",
     [](const Problem& p, const Config& c, const DeviceTraits&) {
         return c[unit] == 16 || c[unit] < 2 * decode_problem(p).tokens_seen();
     }},
};

/// Of k_cache or v_cache: head_dim, tokens of a sequence or page, heads, sequences or pages.
TensorMap cache_map(const DecodeProblem& p, const Ring& ring, int pointer) {
    const bool paged = p.page_size > 0;
    TensorMap map{.pointer = static_cast<std::uint8_t>(pointer), .dtype = p.cache_dtype(), .rank = 4};
    map.swizzle_bytes = 128;
    map.extents = {static_cast<std::uint32_t>(p.head_dim), static_cast<std::uint32_t>(p.page_size),
                   static_cast<std::uint32_t>(p.kv_heads), 1, 1};
    if (!paged) map.extent_scalars[1] = kv_len;
    map.extent_scalars[3] = static_cast<std::uint8_t>(paged ? pool_pages : batch);
    map.stride_scalars = {cache_token_stride, cache_head_stride, cache_stride, 0};
    // Producers with cp.async take no boxes, but the map must be a valid one.
    const int tokens = ring.copy_engine() ? ring.box_tokens() : 1;
    map.box = {static_cast<std::uint16_t>(ring.panel_columns()), static_cast<std::uint16_t>(tokens), 1, 1, 1};
    return map;
}

Plan plan(const Problem& problem, const Config& config, const DeviceTraits& traits) {
    const DecodeProblem p = decode_problem(problem);
    const Ring ring = shape(p, config);
    Plan plan = attention_decode::plan("attention_decode_ring", p, cut(p, config), traits);
    Launch& main = plan.launches[0];
    main.block.x = static_cast<std::uint32_t>(ring.threads());
    main.shared_bytes = static_cast<std::uint32_t>(ring.shared_bytes());
    plan.tensor_map_count = 2;
    plan.tensor_maps[0] = cache_map(p, ring, k_cache);
    plan.tensor_maps[1] = cache_map(p, ring, v_cache);
    main.args[main.arg_count++] = tensor_map_arg(0);
    main.args[main.arg_count++] = tensor_map_arg(1);
    return plan;
}

double predict(const Problem& problem, const Config& config, const DeviceTraits& traits) {
    const DecodeProblem p = decode_problem(problem);
    const Ring ring = shape(p, config);
    const double row_blocks = static_cast<double>(ceil_div(ring.geometry.block_rows(), 8));
    const double column_blocks = static_cast<double>(ceil_div(p.head_dim, 16));
    const double widen = p.fp8_cache ? (p.dtype == Dtype::fp16 ? 10.0 : 22.0) : 0.0;
    // Heads lie inside of tokens: the lists of a sequence apart ask for parts of the same pages of memory at
    // different times.
    const bool apart = p.kv_heads > 1 && config[side_by_side] == 0;
    const double order = (apart ? 1.04 : 1.0) * (config[unit] == 16 ? 1.012 : 1.0);
    const double rest = 2.2 + (config[producers] != 0 ? 2.3 : 0.0) + (p.page_size > 0 ? 1.2 : 0.0) +
                        0.02 * static_cast<double>(config[warps] * config[unit]) / 16;
    return predict_us(p, cut(p, config),
                      {.in_flight_bytes = static_cast<double>(ring.stages * ring.stage_bytes()),
                       .instructions = column_blocks * (3.0 + 2.0 * row_blocks + widen) + 70.0 * row_blocks +
                                       400.0 / static_cast<double>(config[unit]),
                       .rest_us = rest,
                       .slowdown = order},
                      traits);
}

/// The best by the cost model of a few measured shapes. How parts of lists meet in the last block has not
/// been measured against all of them: the tuner may choose it.
std::optional<Config> fallback(const Problem& problem, const DeviceTraits& traits) {
    struct Proven {
        std::int64_t warps, unit, stages, blocks_per_sm;
    };
    constexpr Proven proven[] = {{4, 32, 12, 1}, {4, 32, 8, 1}, {4, 32, 4, 1}, {8, 32, 8, 1},
                                 {4, 16, 12, 2}, {4, 16, 8, 1}, {4, 16, 4, 1}};
    std::vector<Config> configs;
    for (const Proven& shape : proven) {
        for (const std::int64_t rows_a_block : tunables[rows].values.span()) {
            for (const std::int64_t copiers : tunables[producers].values.span()) {
                for (const std::int64_t shared : {1, 2, 4, 8}) {
                    for (const std::int64_t beside : {0, 1}) {
                        Config& config = configs.emplace_back();
                        config[rows] = rows_a_block;
                        config[warps] = shape.warps;
                        config[unit] = shape.unit;
                        config[stages] = shape.stages;
                        config[producers] = copiers;
                        config[cluster] = shared;
                        config[side_by_side] = beside;
                        config[blocks_per_sm] = shape.blocks_per_sm;
                    }
                }
            }
        }
    }
    return best_of(problem, ring, configs, traits);
}

}  // namespace

const Variant ring{
    .name = "ring",
    .summary =
        "the cache passes through a ring in shared memory, filled by the copy engine or "
        "cp.async; products on tensor cores",
    .source = "attention_decode/ring.cu",
    .min_arch = {9, 0, false},
    .tunables = tunables,
    .constraints = constraints,
    .plan = plan,
    .fallback = fallback,
    .access_elements = [](const Problem& p, const Config&) { return wide_access(decode_problem(p)); },
    .predict_us = predict};

}  // namespace hone::attention_decode
