#include <algorithm>
#include <optional>

#include "kernel_templates/kit/accesses.h"
#include "kernel_templates/norm/group_rows_plan.h"
#include "kernel_templates/norm/rules.h"

namespace hone::norm {
namespace {

/// Of `programmatic`.
constexpr std::int64_t asks_ahead = 2;

constexpr auto tunables = tunables_of({
    tunable<&GroupRowsConfig::threads>("threads a block", {32, 64, 128, 256, 512, 1024}),
    tunable<&GroupRowsConfig::lanes>("threads that share a row", {4, 8, 16, 32, 64, 128, 256, 512, 1024}),
    tunable<&GroupRowsConfig::vector>("elements a memory access", {1, 2, 4, 8}),
    tunable<&GroupRowsConfig::rows>("rows a group keeps in flight", {1, 2, 4}),
    tunable<&GroupRowsConfig::early_weights>("1: weights are loaded into registers ahead of the reduction",
                                             {0, 1}),
    tunable<&GroupRowsConfig::load_hint>(
        "cache hint of loads: 0 normal, 2 streaming; past L1, 3 what L2 lets go first, 4 last",
        {0, 2, first_to_leave, last_to_leave}),
    tunable<&GroupRowsConfig::store_hint>("cache hint of stores: 0 normal, 1 streaming", {0, 1}),
    make_tunable(
        &GroupRowsConfig::programmatic, "programmatic",
        "1: programmatic dependent launch; 2: and level 2 is asked for rows while the call ahead ends",
        {0, 1, asks_ahead}, 1),
});

std::int64_t held_registers(const NormProblem& norm, const GroupRowsConfig& c) {
    const std::int64_t row = row_registers(norm.packets(c.lanes, c.vector), c.vector, norm.element_bytes());
    const std::int64_t parameters = c.early_weights != 0 ? row * (norm.bias ? 2 : 1) : 0;
    return row * c.rows * (norm.residual ? 2 : 1) + parameters;
}

constexpr Constraint constraints[] = {
    lanes_fit_block<GroupRowsConfig>,
    vector_is_widest<GroupRowsConfig>,
    rule("at least half of the lanes must own columns",
         [](const NormProblem& p, const GroupRowsConfig& c) {
             return c.lanes == 4 || c.lanes * c.vector < 2 * p.hidden;
         }),
    rule("the rows, weights and residuals that a thread holds must fit its registers",
         [](const NormProblem& p, const GroupRowsConfig& c) {
             return held_registers(p, c) <= register_budget(c.threads);
         }),
    rule("several rows in flight pay only where a thread holds few packets of each",
         [](const NormProblem& p, const GroupRowsConfig& c) {
             return c.rows == 1 || c.rows * p.packets(c.lanes, c.vector) <= 8;
         }),
    rule("what L2 is told of loads needs sm_90",
         [](const GroupRowsConfig& c, const DeviceTraits& t) {
             return c.load_hint < first_to_leave || t.has_bulk_copy();
         }),
    programmatic_needs_sm_90<GroupRowsConfig>,
    rule("rows of smaller calls are in L2, where the call ahead has just written them",
         [](const NormProblem& p, const GroupRowsConfig& c, const DeviceTraits& t) {
             return c.programmatic != asks_ahead || fills_half_of_l2(p, t);
         }),
};

/// What rows that are asked for ahead save of a call: up to half a microsecond, unless level 2 holds them.
double ahead_factor(const NormProblem& norm, const GroupRowsConfig& c, const DeviceTraits& traits) {
    if (c.programmatic != asks_ahead) return 1.0;
    return bound_by_memory(norm, traits) ? 0.995 : exceeds_l2(norm, traits) ? 0.99 : 1.02;
}

double predict(const NormProblem& norm, const GroupRowsConfig& c, const DeviceTraits& traits) {
    const double row_bytes = static_cast<double>(norm.read_bytes());
    const double groups = static_cast<double>(c.threads / c.lanes);
    const double rows_per_group = static_cast<double>(c.rows);
    const std::int64_t packets = norm.packets(c.lanes, c.vector);
    const MemoryShape shape{
        .bytes_per_thread = static_cast<double>(packets * c.vector * norm.element_bytes()),
        .rows_per_block = groups,
        .rows_in_flight = rows_per_group};
    return predict_us(norm,
                      {.blocks = group_rows_plan(norm, c, traits).launches[0].grid.x,
                       .threads = c.threads,
                       .held_registers = held_registers(norm, c),
                       .elements = static_cast<double>(packets * c.vector * c.rows),
                       .work_factor = work_factor(norm),
                       .reducing_warps = c.lanes > 32 ? static_cast<double>(c.lanes) / 32 : 0.0,
                       .bytes_in_flight = row_bytes * groups * rows_per_group,
                       .latency_us = c.early_weights != 0 ? 0.0 : 0.15,
                       .slowdown = ahead_factor(norm, c, traits) * level_2_factor(norm, c.load_hint, traits) *
                                   hint_factor(norm, c.load_hint == 2, c.store_hint != 0, traits) *
                                   memory_factor(norm, shape, traits),
                       .programmatic = c.programmatic != 0},
                      traits);
}

/// The config that the cost model likes best, of those with one row in flight and no cache hints but what
/// level 2 is told of loads, where a call does not fit it: so nothing that another operator left there is
/// lost for it. By level_2_factor() rows leave first in calls of 1 to 1.5 times L2, and last from 4 times on.
/// It must not spill on any chip: conversions to codes, done in software before sm_89, want registers too.
/// Where no multiprocessor has two rows, more than eight warps a row only meet later, unless threads have
/// more than nine accesses then: 5 to 10 % of a call on an H200.
std::optional<GroupRowsConfig> fallback(const NormProblem& norm, const DeviceTraits& traits) {
    std::optional<GroupRowsConfig> best;
    if (is_for_clusters(norm, traits)) return best;
    double best_us = 0;
    GroupRowsConfig c;
    c.vector = widest_vector(norm.hidden, norm.element_bytes());
    const bool few_warps = norm.rows <= traits.sm_count && norm.packets(256, c.vector) <= 9;
    const std::int64_t conversions = norm.quantized() ? 32 : 0;
    c.rows = 1;
    c.programmatic = traits.has_programmatic_launch() ? 1 : 0;
    const bool tells_level_2 = traits.has_bulk_copy() && exceeds_l2(norm, traits);
    for (const std::int64_t early : {1, 0}) {
        for (const std::int64_t lane_count : tunables[index_of(&GroupRowsConfig::lanes)].values.span()) {
            if (best && few_warps && lane_count > 256) continue;
            c.early_weights = early;
            c.lanes = lane_count;
            c.threads = std::max<std::int64_t>(lane_count, 128);
            if (held_registers(norm, c) + conversions > register_budget(c.threads)) continue;
            for (const std::int64_t hint : {std::int64_t{0}, first_to_leave, last_to_leave}) {
                if (hint != 0 && !tells_level_2) continue;
                c.load_hint = hint;
                const double us = predict(norm, c, traits);
                if (best && us >= best_us) continue;
                best = c;
                best_us = us;
            }
        }
    }
    return best;
}

}  // namespace

Variant group_rows(std::string_view source) {
    return {.name = "group_rows",
            .summary = "a group of threads, part of a warp up to a block, holds a row in registers",
            .source = source,
            .tunables = tunables,
            .constraints = constraints,
            .kernels = group_rows_kernels,
            .plan = typed<group_rows_plan>,
            .fallback = typed<fallback>,
            .access_elements = typed<group_rows_access_elements>,
            .predict_us = typed<predict>};
}

}  // namespace hone::norm
