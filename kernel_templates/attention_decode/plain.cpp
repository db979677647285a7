#include <vector>

#include "kernel_templates/attention_decode/attention_decode.h"

namespace hone::attention_decode {
namespace {

enum Index : std::size_t { rows, warps, unit, vector, join, side_by_side, blocks_per_sm };

constexpr Tunable tunables[] = {
    {"rows", "rows of a block: query tokens times heads that share a key-value head", {2, 4, 8}},
    {"warps", "of a block", {4, 8}},
    {"unit", "tokens that a warp takes in turn", {16, 32}},
    {"vector", "elements an access", {1, 2, 4}},
    {"join", "of lists that were cut: 0 a second launch, 1 the last block", {0, 1}},
    {"side_by_side", "1: blocks beside each other read neighbouring heads of the same tokens", {0, 1}},
    {"blocks_per_sm", "resident blocks a multiprocessor", {1, 2, 4}},
};

/// Tokens that are read together, as in plain.cu.
constexpr std::int64_t step = 4;

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

std::int64_t lane_columns(const DecodeProblem& p, const Config& c) {
    return ceil_div(p.head_dim, 32 * c[vector]) * c[vector];
}

/// Queries and sums of the rows, the tokens that are read together, and one of them as floats.
std::int64_t held_registers(const DecodeProblem& p, const Config& c) {
    const std::int64_t accesses = lane_columns(p, c) / c[vector];
    const std::int64_t packet = ceil_div(c[vector] * p.cache_element_bytes(), 4);
    const std::int64_t block_rows = geometry(p, c).block_rows();
    return 2 * block_rows * lane_columns(p, c) + 2 * step * accesses * packet + lane_columns(p, c) +
           block_rows * (2 + step) + 40;
}

constexpr Constraint constraints[] = {
    {"a block has more rows where there are more than half of them",
     [](const Problem& p, const Config& c, const DeviceTraits&) {
         return rows_exist(decode_problem(p), c[rows], 2);
     }},
    {"heads are whole accesses",
     [](const Problem& p, const Config& c, const DeviceTraits&) {
         return decode_problem(p).head_dim % c[vector] == 0;
     }},
    {"rows and the tokens on their way must fit a thread's registers",
     [](const Problem& problem, const Config& c, const DeviceTraits& t) {
         const DecodeProblem p = decode_problem(problem);
         const std::int64_t share = t.registers_per_sm / (32 * c[warps] * c[blocks_per_sm]) / 8 * 8;
         return held_registers(p, c) <= std::min<std::int64_t>(share, 208);
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
};

Plan plan(const Problem& problem, const Config& config, const DeviceTraits& traits) {
    const DecodeProblem p = decode_problem(problem);
    return attention_decode::plan("attention_decode_plain", p, cut(p, config), traits);
}

double predict(const Problem& problem, const Config& config, const DeviceTraits& traits) {
    const DecodeProblem p = decode_problem(problem);
    const double block_rows = geometry(p, config).block_rows();
    const double columns = static_cast<double>(lane_columns(p, config));
    const double accesses = columns / static_cast<double>(config[vector]);
    const double packet = static_cast<double>(config[vector] * p.cache_element_bytes());
    const bool apart = p.kv_heads > 1 && config[side_by_side] == 0;
    return predict_us(
        p, cut(p, config),
        {.in_flight_bytes = static_cast<double>(config[warps] * 32 * 2 * step) * accesses * packet,
         .instructions = 16.0 * (block_rows * (2 * columns + 22) + 4 * accesses + 2 * columns + 10),
         .rest_us = 4.4,
         .slowdown = apart ? 1.03 : 1.015},
        traits);
}

std::optional<Config> fallback(const Problem& problem, const DeviceTraits& traits) {
    const DecodeProblem p = decode_problem(problem);
    std::vector<Config> configs;
    for (const std::int64_t rows_a_block : tunables[rows].values.span()) {
        for (const std::int64_t resident : {4, 2, 1}) {
            for (const std::int64_t beside : {0, 1}) {
                Config& config = configs.emplace_back();
                config[rows] = rows_a_block;
                config[warps] = 4;
                config[unit] = 16;
                config[vector] = p.head_dim % 4 == 0 ? 4 : p.head_dim % 2 == 0 ? 2 : 1;
                config[side_by_side] = beside;
                config[blocks_per_sm] = resident;
            }
        }
    }
    return best_of(problem, plain, configs, traits);
}

}  // namespace

const Variant plain{.name = "plain",
                    .summary = "products on the CUDA cores: any size, any type, any strides on any chip",
                    .source = "attention_decode/plain.cu",
                    .tunables = tunables,
                    .constraints = constraints,
                    .plan = plan,
                    .fallback = fallback,
                    .access_elements = [](const Problem&, const Config& config) { return config[vector]; },
                    .predict_us = predict};

}  // namespace hone::attention_decode
