#include <vector>

#include "kernel_templates/attention_decode/attention_decode.h"

namespace hone::attention_decode {
namespace {

enum Index : std::size_t { rows, warps, unit, join, side_by_side, load_hint, blocks_per_sm };

constexpr Tunable tunables[] = {
    {"rows", "rows of a block: query tokens times heads that share a key-value head", {8, 16}},
    {"warps", "of a block", {4, 6, 8, 12}},
    {"unit", "tokens that a warp reads together", {16, 32}},
    {"join", "of lists that were cut: 0 a second launch, 1 the last block", {0, 1}},
    {"side_by_side", "1: blocks beside each other read neighbouring heads of the same tokens", {0, 1}},
    {"load_hint", "of the cache: 1 not into level 1, 2 and whole lines into level 2", {1, 2}},
    {"blocks_per_sm", "resident blocks a multiprocessor", {1, 2}},
};

Geometry geometry(const DecodeProblem& p, const Config& c) {
    return {.group = static_cast<int>(p.group()),
            .kv_heads = static_cast<int>(p.kv_heads),
            .head_dim = static_cast<int>(p.head_dim),
            .q_tokens = static_cast<int>(p.q_tokens),
            .cache_bytes = static_cast<int>(p.cache_element_bytes()),
            .rows_a_block = static_cast<int>(c[rows]),
            .warps = static_cast<int>(c[warps]),
            .side_by_side = c[side_by_side] != 0};
}

Cut cut(const DecodeProblem& p, const Config& c) {
    return {.geometry = geometry(p, c),
            .unit = c[unit],
            .blocks_per_sm = c[blocks_per_sm],
            .last_block = c[join] != 0};
}

LaneRows lane_rows(const DecodeProblem& p) {
    return {.head_dim = static_cast<int>(p.head_dim),
            .cache_bytes = static_cast<int>(p.cache_element_bytes())};
}

/// Words of the cache that a thread holds; and with sums and the query, all.
std::int64_t held_words(const DecodeProblem& p, const Config& c) {
    return c[unit] / 16 * lane_rows(p).held_words();
}
std::int64_t held_registers(const DecodeProblem& p, const Config& c) {
    const LaneRows lane = lane_rows(p);
    const std::int64_t row_blocks = ceil_div(geometry(p, c).block_rows(), 8);
    const std::int64_t query = lane.k_steps() * lane.k_columns() / 2;
    return held_words(p, c) + row_blocks * (4 * lane.v_blocks() + query) + (p.fp8_cache ? 40 : 28);
}

constexpr Constraint constraints[] = {
    {"tensor cores multiply fp16 and bf16, in heads of whole accesses of 16 bytes",
     [](const Problem& p, const Config&, const DeviceTraits&) { return has_wide_rows(decode_problem(p)); }},
    {"a block has 16 rows where there are more than 8",
     [](const Problem& p, const Config& c, const DeviceTraits&) {
         return rows_exist(decode_problem(p), c[rows], 8);
     }},
    {"what is on its way, sums and query must fit a thread's registers",
     [](const Problem& problem, const Config& c, const DeviceTraits& t) {
         const DecodeProblem p = decode_problem(problem);
         const std::int64_t share = t.registers_per_sm / (32 * c[warps] * c[blocks_per_sm]) / 8 * 8;
         return held_registers(p, c) <= std::min<std::int64_t>(share, 232);
     }},
    {"the warps' sums must fit shared memory, as often as blocks are resident",
     [](const Problem& p, const Config& c, const DeviceTraits& t) {
         const std::int64_t bytes = geometry(decode_problem(p), c).join_bytes();
         return bytes <= t.max_shared_bytes_per_block &&
                c[blocks_per_sm] * (bytes + 1024) <= t.shared_bytes_per_sm &&
                c[blocks_per_sm] * c[warps] * 32 <= t.max_threads_per_sm;
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

Plan plan(const Problem& problem, const Config& config, const DeviceTraits& traits) {
    const DecodeProblem p = decode_problem(problem);
    return attention_decode::plan("attention_decode_registers", p, cut(p, config), traits);
}

double predict(const Problem& problem, const Config& config, const DeviceTraits& traits) {
    const DecodeProblem p = decode_problem(problem);
    const double row_blocks = static_cast<double>(ceil_div(geometry(p, config).block_rows(), 8));
    const double column_blocks = static_cast<double>(ceil_div(p.head_dim, 16));
    const double widen = p.fp8_cache ? (p.dtype == Dtype::fp16 ? 10.0 : 22.0) : 0.0;
    const bool apart = p.kv_heads > 1 && config[side_by_side] == 0;
    const double order = (apart ? 1.03 : 1.015) * (config[load_hint] == 2 ? 1.0 : 1.01);
    return predict_us(
        p, cut(p, config),
        {.in_flight_bytes = static_cast<double>(config[warps] * 32 * 4 * held_words(p, config)),
         .instructions = column_blocks * (8.0 + 2.0 * row_blocks + widen) + 70.0 * row_blocks + 60.0,
         .rest_us = 4.2 + (p.page_size > 0 ? 2.5 : 0.0),
         .slowdown = order},
        traits);
}

std::optional<Config> fallback(const Problem& problem, const DeviceTraits& traits) {
    std::vector<Config> configs;
    for (const std::int64_t rows_a_block : tunables[rows].values.span()) {
        for (const std::int64_t count : {8, 6, 4}) {
            for (const std::int64_t tokens : tunables[unit].values.span()) {
                for (const std::int64_t beside : {0, 1}) {
                    Config& config = configs.emplace_back();
                    config[rows] = rows_a_block;
                    config[warps] = count;
                    config[unit] = tokens;
                    config[side_by_side] = beside;
                    config[load_hint] = 2;
                    config[blocks_per_sm] = 1;
                }
            }
        }
    }
    return best_of(problem, registers, configs, traits);
}

}  // namespace

const Variant registers{
    .name = "registers",
    .summary = "the cache goes straight into the operands of warp tensor cores",
    .source = "attention_decode/registers.cu",
    .min_arch = {8, 0, false},
    .tunables = tunables,
    .constraints = constraints,
    .plan = plan,
    .fallback = fallback,
    .access_elements = [](const Problem& p, const Config&) { return wide_access(decode_problem(p)); },
    .predict_us = predict};

}  // namespace hone::attention_decode
