#include <algorithm>
#include <optional>
#include <vector>

#include "kernel_templates/attention_decode/rank.h"
#include "kernel_templates/attention_decode/registers_plan.h"
#include "kernel_templates/attention_decode/rules.h"
#include "kernel_templates/attention_decode/variants.h"
#include "kernel_templates/kit/fallbacks.h"

namespace hone::attention_decode {
namespace {

constexpr auto tunables = tunables_of({
    tunable<&RegistersConfig::rows>("rows of a block: query tokens times heads that share a key-value head",
                                    {8, 16}),
    tunable<&RegistersConfig::warps>("of a block", {4, 6, 8, 12}),
    tunable<&RegistersConfig::unit>("tokens that a warp reads together", {16, 32}),
    tunable<&RegistersConfig::join>("of lists that were cut: 0 a second launch, 1 the last block", {0, 1}),
    tunable<&RegistersConfig::side_by_side>(
        "1: blocks beside each other read neighbouring heads of the same tokens", {0, 1}),
    tunable<&RegistersConfig::load_hint>("of the cache: 1 not into level 1, 2 and whole lines into level 2",
                                         {1, 2}),
    tunable<&RegistersConfig::blocks_per_sm>("resident blocks a multiprocessor", {1, 2}),
});

LaneRows lane_rows(const DecodeProblem& p) {
    return {.head_dim = static_cast<int>(p.head_dim),
            .cache_bytes = static_cast<int>(p.cache_element_bytes())};
}

/// Words of the cache that a thread holds; and with sums and the query, all.
std::int64_t held_words(const DecodeProblem& p, const RegistersConfig& c) {
    return c.unit / 16 * lane_rows(p).held_words();
}
std::int64_t held_registers(const DecodeProblem& p, const RegistersConfig& c) {
    const LaneRows lane = lane_rows(p);
    const std::int64_t row_blocks = ceil_div(cut(p, c).geometry.block_rows(), 8);
    const std::int64_t query = lane.k_steps() * lane.k_columns() / 2;
    return held_words(p, c) + row_blocks * (4 * lane.v_blocks() + query) + (p.fp8_cache() ? 48 : 36);
}

constexpr Constraint constraints[] = {
    rows_are_wide,
    has_rows_of_8_or_16<RegistersConfig>,
    rule("what is on its way, sums and query must fit a thread's registers",
         [](const DecodeProblem& p, const RegistersConfig& c, const DeviceTraits& t) {
             const std::int64_t share = t.registers_per_sm / (32 * c.warps * c.blocks_per_sm) / 8 * 8;
             return held_registers(p, c) <= std::min<std::int64_t>(share, 232);
         }),
    sums_fit_shared_memory<RegistersConfig>,
    lists_fit_side_by_side<RegistersConfig>,
    units_are_filled<RegistersConfig>,
};

double predict(const DecodeProblem& p, const RegistersConfig& c, const DeviceTraits& traits) {
    const double row_blocks = static_cast<double>(ceil_div(cut(p, c).geometry.block_rows(), 8));
    const double column_blocks = static_cast<double>(ceil_div(p.head_dim, 16));
    const double widen = p.fp8_cache() ? 10.0 : 0.0;
    const bool apart = p.kv_heads > 1 && c.side_by_side == 0;
    const double order = (apart ? 1.03 : 1.015) * (c.load_hint == 2 ? 1.0 : 1.01);
    return predict_us(
        p, cut(p, c),
        {.in_flight_bytes = static_cast<double>(c.warps * 32 * 4 * held_words(p, c)),
         .instructions = column_blocks * (8.0 + 2.0 * row_blocks + widen) + 70.0 * row_blocks + 60.0,
         .rest_us = 4.2 + (p.page_size > 0 ? 2.5 : 0.0),
         .slowdown = order},
        traits);
}

std::optional<RegistersConfig> fallback(const Problem& problem, const DeviceTraits& traits) {
    RegistersConfig c{.load_hint = 2};
    std::vector<RegistersConfig> configs;
    for (const std::int64_t rows : tunables[index_of(&RegistersConfig::rows)].values.span()) {
        for (const std::int64_t warps : {8, 6, 4}) {
            for (const std::int64_t unit : tunables[index_of(&RegistersConfig::unit)].values.span()) {
                for (const std::int64_t beside : {0, 1}) {
                    c.rows = rows;
                    c.warps = warps;
                    c.unit = unit;
                    c.side_by_side = beside;
                    configs.push_back(c);
                }
            }
        }
    }
    return best_of<RegistersConfig>(problem, registers, configs, traits);
}

}  // namespace

const Variant registers{.name = "registers",
                        .summary = "the cache goes straight into the operands of warp tensor cores",
                        .source = "attention_decode/registers.cu",
                        .min_arch = {8, 0, false},
                        .tunables = tunables,
                        .constraints = constraints,
                        .kernels = registers_kernels,
                        .plan = typed<registers_plan>,
                        .fallback = typed<fallback>,
                        .access_elements = typed<registers_access_elements>,
                        .predict_us = typed<predict>};

}  // namespace hone::attention_decode
