#include <algorithm>

#include "kernel_templates/attention_prefill/wgmma_config.h"

namespace hone::attention_prefill {
namespace {

using namespace warpgroup;

constexpr Tunable tunables[] = {
    {"consumers", "warpgroups of 64 queries; two multiply in turn (ping-pong)", {1, 2}},
    {"tile_n", "keys of a stage", {64, 80, 96, 112, 128, 144, 176}},
    {"stages", "of keys, and of values", {2, 3}},
    {"query_stages", "tiles whose queries stand in shared memory", {1, 2}},
    {"blocks_per_sm", "resident blocks a multiprocessor", {1, 2, 3}},
    {"query_in_registers", "1: queries are the left operand from registers", {0, 1}},
    {"section_mib", "of level 2 for the keys and values of heads that are worked on together", {4, 8, 24}},
    {"dynamic", "1: blocks draw their tiles; 0: each has its own", {0, 1}},
    {"softmax_first",
     "1: all exponentials stand before the wait for the product beside them; 0: most",
     {0, 1}},
    {"programmatic", "1: programmatic dependent launch", {0, 1}},
};

/// A thread's registers beside those that it holds throughout: what the compiler needs without spilling.
int working_registers(const AttentionProblem& p) {
    return 32 + (p.softcap ? 8 : 0) + (p.window > 0 || p.lengths != Lengths::none ? 8 : 0);
}

bool is_short(const AttentionProblem& p, const Config& config, const DeviceTraits& traits) {
    return tiles(p, geometry(p, config)) <= 4 * places(config, traits);
}

constexpr Constraint constraints[] = {
    {"tensor cores multiply fp16 and bf16",
     [](const Problem& p, const Config&, const DeviceTraits&) {
         return attention_problem(p).dtype != Dtype::fp32;
     }},
    {"rows must have whole 16-byte chunks: head_dim is a multiple of 8",
     [](const Problem& p, const Config&, const DeviceTraits&) {
         return attention_problem(p).head_dim % 8 == 0;
     }},
    {"the resident blocks' queries, keys and values must fit shared memory",
     [](const Problem& p, const Config& c, const DeviceTraits&) {
         const Geometry g = geometry(attention_problem(p), c);
         return g.blocks_per_sm * (g.shared_bytes() + reserved_bytes) <= shared_bytes_per_sm;
     }},
    {"scores, weights and sums must fit a thread's registers",
     [](const Problem& p, const Config& c, const DeviceTraits&) {
         const Geometry g = geometry(attention_problem(p), c);
         return g.held_registers(c[query_in_registers] != 0) + working_registers(attention_problem(p)) <=
                g.consumer_registers();
     }},
    {"queries in registers leave their stage free at once: one is enough",
     [](const Problem&, const Config& c, const DeviceTraits&) {
         return c[query_in_registers] == 0 || c[query_stages] == 1;
     }},
    {"a second consumer is for more than 64 queries",
     [](const Problem& p, const Config& c, const DeviceTraits&) {
         return c[consumers] == 1 || attention_problem(p).q_len > block_rows;
     }},
    {"a lone consumer is for so few tiles that multiprocessors have hardly more than one each",
     [](const Problem& problem, const Config& c, const DeviceTraits& t) {
         const AttentionProblem p = attention_problem(problem);
         return c[consumers] * c[blocks_per_sm] > 1 || tiles(p, geometry(p, c)) <= 4 * t.sm_count;
     }},
    {"a third stage is for short ones",
     [](const Problem&, const Config& c, const DeviceTraits&) { return c[stages] == 2 || c[tile_n] <= 112; }},
    {"sections order causal tiles, where no window makes them equal",
     [](const Problem& p, const Config& c, const DeviceTraits&) {
         return c[section_mib] == 24 || has_sections(attention_problem(p));
     }},
    {"a second stage of queries and drawing are for blocks with more than one tile",
     [](const Problem& problem, const Config& c, const DeviceTraits& t) {
         const AttentionProblem p = attention_problem(problem);
         return (c[query_stages] == 1 && c[dynamic] == 0) || tiles(p, geometry(p, c)) > places(c, t);
     }},
    {"programmatic launch is for short calls: up to four rounds of tiles",
     [](const Problem& problem, const Config& c, const DeviceTraits& t) {
         return c[programmatic] == 0 || is_short(attention_problem(problem), c, t);
     }},
};

/// Of q, k or v by its strides: {head_dim, tokens, heads, sequences}; a packed one is a single sequence, with
/// as many tokens as the call says.
TensorMap tensor_map(const AttentionProblem& p, int pointer, std::int64_t token_count,
                     std::int64_t head_count, int first_stride, int tokens_scalar, int box_rows) {
    TensorMap map{.pointer = static_cast<std::uint8_t>(pointer),
                  .dtype = p.dtype,
                  .rank = 4,
                  .swizzle_bytes = row_bytes};
    map.extents = {static_cast<std::uint32_t>(p.head_dim), static_cast<std::uint32_t>(token_count),
                   static_cast<std::uint32_t>(head_count), static_cast<std::uint32_t>(p.batch), 0};
    const auto scalar = [first_stride](int further) {
        return static_cast<std::uint8_t>(first_stride + further);
    };
    map.stride_scalars = {scalar(1), scalar(2), scalar(0), 0};
    if (p.packed()) {
        map.extents[3] = 1;
        map.extent_scalars[1] = static_cast<std::uint8_t>(tokens_scalar);
        map.stride_scalars[2] = TensorMap::no_gaps;
    }
    map.box = {panel_width, static_cast<std::uint16_t>(box_rows), 1, 1, 0};
    return map;
}

Plan plan(const Problem& problem, const Config& config, const DeviceTraits& traits) {
    const AttentionProblem p = attention_problem(problem);
    const Geometry g = geometry(p, config);
    Plan plan{.launch_count = 1,
              .tensor_map_count = 3,
              .value_count = 3,
              .workspace_bytes = config[dynamic] != 0 ? 8 : 0};
    plan.tensor_maps[0] = tensor_map(p, q, p.q_len, p.heads, q_batch_stride, q_tokens, block_rows);
    plan.tensor_maps[1] = tensor_map(p, k, p.kv_len, p.kv_heads, k_batch_stride, kv_tokens, g.tile_n);
    plan.tensor_maps[2] = tensor_map(p, v, p.kv_len, p.kv_heads, v_batch_stride, kv_tokens, g.tile_n);
    const Sections order = sections(p, config);
    plan.values[0].number = order.rows;
    plan.values[1].number = order.heads;
    plan.values[2].number = order.count;

    const std::int64_t blocks = std::min(tiles(p, g), places(config, traits));
    Launch& kernel = plan.launches[0];
    kernel = launch("attention_prefill_wgmma", {static_cast<std::uint32_t>(blocks), 1, 1}, g.threads());
    kernel.shared_bytes = static_cast<std::uint32_t>(g.shared_bytes());
    kernel.programmatic = config[programmatic] != 0;
    for (int i = 0; i < plan.tensor_map_count; ++i) kernel.args[kernel.arg_count++] = tensor_map_arg(i);
    for (int i = 0; i < plan.value_count; ++i) kernel.args[kernel.arg_count++] = plan_value_arg(i);
    return plan;
}

/// The best by the cost model of a few proven shapes of tiles.
std::optional<Config> fallback(const Problem& problem, const DeviceTraits& traits) {
    struct Shape {
        std::int64_t consumers, tile_n, blocks_per_sm;
    };
    constexpr Shape shapes[] = {{2, 128, 1}, {2, 96, 1},  {2, 64, 1}, {1, 128, 2},
                                {1, 64, 2},  {1, 128, 1}, {1, 64, 1}};
    std::vector<Config> configs;
    for (const Shape& shape : shapes) {
        for (const std::int64_t drawn : {1, 0}) {
            for (const std::int64_t section : tunables[section_mib].values.span()) {
                Config& config = configs.emplace_back();
                config[consumers] = shape.consumers;
                config[tile_n] = shape.tile_n;
                config[stages] = 2;
                config[query_stages] = 1;
                config[blocks_per_sm] = shape.blocks_per_sm;
                config[query_in_registers] = 0;
                config[section_mib] = section;
                config[dynamic] = drawn;
                config[softmax_first] = 0;
                config[programmatic] = is_short(attention_problem(problem), config, traits) ? 1 : 0;
            }
        }
    }
    return best_of(problem, wgmma, configs, traits);
}

}  // namespace

const Variant wgmma{.name = "wgmma",
                    .summary = "warpgroup tensor cores fed by tensor copies, one warpgroup for the copies",
                    .source = "attention_prefill/wgmma.cu",
                    .min_arch = {9, 0, true},
                    .tunables = tunables,
                    .constraints = constraints,
                    .plan = plan,
                    .fallback = fallback,
                    .access_elements = [](const Problem&, const Config&) { return std::int64_t{8}; },
                    .predict_us = predict};

}  // namespace hone::attention_prefill
