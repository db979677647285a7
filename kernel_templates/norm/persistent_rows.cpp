#include <algorithm>

#include "kernel_templates/kit/fixed_answers.h"
#include "kernel_templates/norm/persistent_rows_plan.h"
#include "kernel_templates/norm/rules.h"

namespace hone::norm {
namespace {

constexpr auto tunables = tunables_of({
    tunable<&PersistentRowsConfig::threads>("threads a block", {64, 128, 256, 512, 1024}),
    tunable<&PersistentRowsConfig::lanes>("threads that share a row", {8, 16, 32, 64, 128, 256, 512, 1024}),
    tunable<&PersistentRowsConfig::vector>("elements a memory access", {1, 2, 4, 8}),
    tunable<&PersistentRowsConfig::stages>("rows of the ring in shared memory", {2, 3, 4}),
    tunable<&PersistentRowsConfig::blocks_per_sm>("resident blocks a multiprocessor", {1, 2, 4, 8}),
    tunable<&PersistentRowsConfig::store_hint>("cache hint of stores: 0 normal, 1 streaming", {0, 1}),
    programmatic_launch<&PersistentRowsConfig::programmatic>(),
});

std::int64_t held_registers(const NormProblem& norm, const PersistentRowsConfig& c) {
    return row_registers(norm.packets(c.lanes, c.vector), c.vector, norm.element_bytes()) *
           (norm.bias ? 2 : 1);
}

constexpr Constraint constraints[] = {
    lanes_fit_block<PersistentRowsConfig>,
    vector_is_widest<PersistentRowsConfig>,
    rule("asynchronous copies move at least 4 bytes",
         [](const NormProblem& p, const PersistentRowsConfig& c) {
             return c.vector * p.element_bytes() >= 4;
         }),
    rule("at least half of the lanes must own columns",
         [](const NormProblem& p, const PersistentRowsConfig& c) {
             return c.lanes * c.vector < 2 * p.hidden;
         }),
    rule("the weights that a thread keeps must fit its registers",
         [](const NormProblem& p, const PersistentRowsConfig& c) {
             return held_registers(p, c) <= register_budget(c.threads) / 2;
         }),
    rule("the rings of all resident blocks must fit shared memory",
         [](const NormProblem& p, const PersistentRowsConfig& c, const DeviceTraits& t) {
             const std::int64_t block = ring_bytes(p, c) + 2048;
             return block <= t.max_shared_bytes_per_block && block * c.blocks_per_sm <= t.shared_bytes_per_sm;
         }),
    rule("the resident blocks must fit a multiprocessor's threads",
         [](const PersistentRowsConfig& c, const DeviceTraits& t) {
             return c.threads * c.blocks_per_sm <= t.max_threads_per_sm;
         }),
    rule("a persistent grid needs more rows than run at once",
         [](const NormProblem& p, const PersistentRowsConfig& c, const DeviceTraits& t) {
             return p.rows > t.sm_count * c.blocks_per_sm * (c.threads / c.lanes);
         }),
    programmatic_needs_sm_90<PersistentRowsConfig>,
};

double predict(const NormProblem& norm, const PersistentRowsConfig& c, const DeviceTraits& traits) {
    const std::int64_t groups = c.threads / c.lanes;
    const Launch launch = persistent_rows_plan(norm, c, traits).launches[0];
    const double row_bytes = static_cast<double>(norm.read_bytes());
    return predict_us(norm,
                      {.blocks = launch.grid.x,
                       .threads = c.threads,
                       .held_registers = held_registers(norm, c),
                       .shared_bytes = launch.shared_bytes,
                       .blocks_per_sm = c.blocks_per_sm,
                       .rounds = static_cast<double>(norm.rows) / static_cast<double>(launch.grid.x * groups),
                       .elements = static_cast<double>(norm.packets(c.lanes, c.vector) * c.vector),
                       .work_factor = work_factor(norm),
                       .reducing_warps = c.lanes > 32 ? static_cast<double>(c.lanes) / 32 : 0.0,
                       .bytes_in_flight = row_bytes * static_cast<double>(groups * (c.stages - 1)),
                       .loads_ahead = true,
                       .slowdown = (bound_by_memory(norm, traits) ? 1.07 : 1.042) *
                                   hint_factor(norm, false, c.store_hint != 0, traits),
                       .programmatic = c.programmatic != 0},
                      traits);
}

}  // namespace

Variant persistent_rows(std::string_view source) {
    return {.name = "persistent_rows",
            .summary =
                "resident blocks walk over the rows, which asynchronous copies bring to shared memory ahead "
                "of use",
            .source = source,
            .min_arch = {8, 0, false},
            .tunables = tunables,
            .constraints = constraints,
            .kernels = persistent_rows_kernels,
            .plan = typed<persistent_rows_plan>,
            .fallback = no_fallback,
            .access_elements = typed<persistent_rows_access_elements>,
            .predict_us = typed<predict>};
}

}  // namespace hone::norm
