#include <algorithm>
#include <optional>
#include <vector>

#include "kernel_templates/attention_decode/plain_plan.h"
#include "kernel_templates/attention_decode/rank.h"
#include "kernel_templates/attention_decode/rules.h"
#include "kernel_templates/attention_decode/variants.h"
#include "kernel_templates/kit/fallbacks.h"

namespace hone::attention_decode {
namespace {

constexpr auto tunables = tunables_of({
    tunable<&PlainConfig::rows>("rows of a block: query tokens times heads that share a key-value head",
                                {2, 4, 8}),
    tunable<&PlainConfig::warps>("of a block", {4, 8}),
    tunable<&PlainConfig::unit>("tokens that a warp takes in turn", {16, 32}),
    tunable<&PlainConfig::vector>("elements an access", {1, 2, 4}),
    tunable<&PlainConfig::join>("of lists that were cut: 0 a second launch, 1 the last block", {0, 1}),
    tunable<&PlainConfig::side_by_side>(
        "1: blocks beside each other read neighbouring heads of the same tokens", {0, 1}),
    tunable<&PlainConfig::blocks_per_sm>("resident blocks a multiprocessor", {1, 2, 4}),
});

/// Tokens that are read together, as in plain.cu.
constexpr std::int64_t step = 4;

std::int64_t lane_columns(const DecodeProblem& p, const PlainConfig& c) {
    return ceil_div(p.head_dim, 32 * c.vector) * c.vector;
}

/// Queries and sums of the rows, the tokens that are read together, and one of them as floats.
std::int64_t held_registers(const DecodeProblem& p, const PlainConfig& c) {
    const std::int64_t accesses = lane_columns(p, c) / c.vector;
    const std::int64_t packet = ceil_div(c.vector * p.cache_element_bytes(), 4);
    const std::int64_t block_rows = cut(p, c).geometry.block_rows();
    return 2 * block_rows * lane_columns(p, c) + 2 * step * accesses * packet + lane_columns(p, c) +
           block_rows * (2 + step) + 40;
}

constexpr Constraint constraints[] = {
    rule("a block has more rows where there are more than half of them",
         [](const DecodeProblem& p, const PlainConfig& c) { return rows_exist(p, c.rows, 2); }),
    rule("heads are whole accesses",
         [](const DecodeProblem& p, const PlainConfig& c) { return p.head_dim % c.vector == 0; }),
    rule("rows and the tokens on their way must fit a thread's registers",
         [](const DecodeProblem& p, const PlainConfig& c, const DeviceTraits& t) {
             const std::int64_t share = t.registers_per_sm / (32 * c.warps * c.blocks_per_sm) / 8 * 8;
             return held_registers(p, c) <= std::min<std::int64_t>(share, 208);
         }),
    sums_fit_shared_memory<PlainConfig>,
    lists_fit_side_by_side<PlainConfig>,
};

double predict(const DecodeProblem& p, const PlainConfig& c, const DeviceTraits& traits) {
    const double block_rows = cut(p, c).geometry.block_rows();
    const double columns = static_cast<double>(lane_columns(p, c));
    const double accesses = columns / static_cast<double>(c.vector);
    const double packet = static_cast<double>(c.vector * p.cache_element_bytes());
    const bool apart = p.kv_heads > 1 && c.side_by_side == 0;
    return predict_us(
        p, cut(p, c),
        {.in_flight_bytes = static_cast<double>(c.warps * 32 * 2 * step) * accesses * packet,
         .instructions = 16.0 * (block_rows * (2 * columns + 22) + 4 * accesses + 2 * columns + 10),
         .rest_us = 4.4,
         .slowdown = apart ? 1.03 : 1.015},
        traits);
}

std::optional<PlainConfig> fallback(const Problem& problem, const DeviceTraits& traits) {
    const DecodeProblem p(problem);
    PlainConfig c;
    c.vector = p.head_dim % 4 == 0 ? 4 : p.head_dim % 2 == 0 ? 2 : 1;
    std::vector<PlainConfig> configs;
    for (const std::int64_t rows : tunables[index_of(&PlainConfig::rows)].values.span()) {
        for (const std::int64_t resident : {4, 2, 1}) {
            for (const std::int64_t beside : {0, 1}) {
                c.rows = rows;
                c.blocks_per_sm = resident;
                c.side_by_side = beside;
                configs.push_back(c);
            }
        }
    }
    return best_of<PlainConfig>(problem, plain, configs, traits);
}

}  // namespace

const Variant plain{.name = "plain",
                    .summary = "products on the CUDA cores: any size, any type, any strides on any chip",
                    .source = "attention_decode/plain.cu",
                    .tunables = tunables,
                    .constraints = constraints,
                    .kernels = plain_kernels,
                    .plan = typed<plain_plan>,
                    .fallback = typed<fallback>,
                    .access_elements = typed<plain_access_elements>,
                    .predict_us = typed<predict>};

}  // namespace hone::attention_decode
