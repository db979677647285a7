#include <algorithm>
#include <cmath>

#include "kernel_templates/kit/accesses.h"
#include "kernel_templates/rmsnorm_backward/held_rows_plan.h"
#include "kernel_templates/rmsnorm_backward/rank.h"

namespace hone::rmsnorm_backward {
namespace {

constexpr auto tunables = tunables_of({
    tunable<&HeldRowsConfig::threads>("threads a block", {128, 256, 512, 1024}),
    tunable<&HeldRowsConfig::lanes>("threads that share a row", {8, 16, 32, 64, 128, 256, 512, 1024}),
    tunable<&HeldRowsConfig::vector>("elements a memory access", {1, 2, 4, 8}),
    tunable<&HeldRowsConfig::ahead>("1: the next row is loaded before this one is reduced", {0, 1}),
    tunable<&HeldRowsConfig::blocks_per_sm>("resident blocks a multiprocessor", {1, 2, 3, 4, 6, 8}),
    tunable<&HeldRowsConfig::load_hint>("cache hint of loads: 0 normal, 2 streaming", {0, 2}),
    tunable<&HeldRowsConfig::store_hint>("cache hint of stores: 0 normal, 1 streaming", {0, 1}),
    tunable<&HeldRowsConfig::sum_lanes>("packets of columns that a block of the last launch adds", {8, 32}),
    programmatic_launch<&HeldRowsConfig::programmatic>(),
});

/// Registers for dy, x and dsum of all rows that a thread holds at once, its weights and its sums of dweight.
/// A packet of one element of 16 bits takes a whole register.
std::int64_t held_registers(const BackwardProblem& norm, const HeldRowsConfig& c) {
    const std::int64_t packets = norm.packets(c.lanes, c.vector);
    const std::int64_t row = std::max(packets, norm::row_registers(packets, c.vector, norm.element_bytes()));
    const std::int64_t sums = packets * c.vector;
    return row * (norm.residual ? 3 : 2) * (1 + c.ahead) + row + sums;
}

/// What a thread needs in all; fitted to what ptxas uses for a dozen shapes on sm_90a. Addresses and results
/// in flight grow with what is held.
std::int64_t needed_registers(const BackwardProblem& norm, const HeldRowsConfig& c) {
    return held_registers(norm, c) * 3 / 2 + 28;
}

/// A thread's registers where `blocks_per_sm` blocks are to be resident.
std::int64_t register_limit(const HeldRowsConfig& c, const DeviceTraits& traits) {
    return std::min<std::int64_t>(255, traits.registers_per_sm / (c.threads * c.blocks_per_sm));
}

/// Bytes in which the groups' sums meet.
std::int64_t exchange_bytes(const HeldRowsConfig& c) { return c.threads * c.vector * 4; }

constexpr Constraint constraints[] = {
    lanes_fit_block<HeldRowsConfig>,
    norm::vector_is_widest<HeldRowsConfig, BackwardProblem>,
    rule("at least half of the lanes must own columns",
         [](const BackwardProblem& p, const HeldRowsConfig& c) {
             return c.lanes == 8 || c.lanes * c.vector < 2 * p.hidden;
         }),
    rule("the resident blocks must fit a multiprocessor's threads",
         [](const HeldRowsConfig& c, const DeviceTraits& t) {
             return c.threads * c.blocks_per_sm <= t.max_threads_per_sm;
         }),
    rule("the last of the resident blocks must get rows",
         [](const BackwardProblem& p, const HeldRowsConfig& c, const DeviceTraits& t) {
             const std::int64_t groups = c.threads / c.lanes;
             return c.blocks_per_sm == 1 || p.rows > t.sm_count * (c.blocks_per_sm - 1) * groups;
         }),
    rule("the rows, weights and sums that a thread holds must fit its registers",
         [](const BackwardProblem& p, const HeldRowsConfig& c, const DeviceTraits& t) {
             return needed_registers(p, c) <= register_limit(c, t);
         }),
    rule("the groups' sums must fit shared memory",
         [](const HeldRowsConfig& c, const DeviceTraits& t) {
             return (exchange_bytes(c) + 2048) * c.blocks_per_sm <= t.shared_bytes_per_sm;
         }),
    programmatic_needs_sm_90<HeldRowsConfig>,
};

double predict(const BackwardProblem& norm, const HeldRowsConfig& c, const DeviceTraits& traits) {
    const std::int64_t blocks = block_count(norm, c, traits);
    const double resident =
        std::min<double>(static_cast<double>(c.blocks_per_sm),
                         std::ceil(static_cast<double>(blocks) / static_cast<double>(traits.sm_count)));
    const double row_bytes = static_cast<double>(norm.read_bytes());
    const double groups = static_cast<double>(c.threads / c.lanes);
    const double reduction_us = c.lanes > 32 ? 0.05 + 0.01 * static_cast<double>(c.lanes) / 32 : 0.02;
    return predict_us(norm,
                      {.bytes_in_flight = row_bytes * groups * resident,
                       .wait_us = c.ahead != 0 ? 0.0 : 0.1 + reduction_us,
                       .partial_rows = static_cast<double>(blocks),
                       .programmatic = c.programmatic != 0},
                      traits);
}

/// The config that the cost model likes best, of those without cache hints. It must not spill on any chip.
std::optional<HeldRowsConfig> fallback(const Problem& problem, const DeviceTraits& traits) {
    const BackwardProblem norm(problem);
    HeldRowsConfig c;
    c.vector = widest_vector(norm.hidden, norm.element_bytes());
    c.sum_lanes = 8;
    c.programmatic = traits.has_programmatic_launch() ? 1 : 0;
    std::optional<HeldRowsConfig> best;
    double best_us = 0;
    for (const std::int64_t lane_count : tunables[index_of(&HeldRowsConfig::lanes)].values.span()) {
        for (const std::int64_t resident : tunables[index_of(&HeldRowsConfig::blocks_per_sm)].values.span()) {
            c.lanes = lane_count;
            c.threads = std::max<std::int64_t>(lane_count, 128);
            c.blocks_per_sm = resident;
            if (held_registers(norm, c) > norm::register_budget(c.threads)) continue;
            if (!allowed(problem, {&held_rows, config_of(c)}, traits)) continue;
            const double us = predict(norm, c, traits);
            if (best && us >= best_us) continue;
            best = c;
            best_us = us;
        }
    }
    return best;
}

}  // namespace

const Variant held_rows{
    .name = "held_rows",
    .summary = "resident blocks hold a row in registers and keep their sums of dweight there",
    .source = "rmsnorm_backward/held_rows.cu",
    .tunables = tunables,
    .constraints = constraints,
    .kernels = held_rows_kernels,
    .plan = typed<held_rows_plan>,
    .fallback = typed<fallback>,
    .access_elements = typed<held_rows_access_elements>,
    .predict_us = typed<predict>};

}  // namespace hone::rmsnorm_backward
