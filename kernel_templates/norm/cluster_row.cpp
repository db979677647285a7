#include <algorithm>

#include "kernel_templates/kit/accesses.h"
#include "kernel_templates/norm/cluster_row_plan.h"
#include "kernel_templates/norm/rules.h"

namespace hone::norm {
namespace {

constexpr auto tunables = tunables_of({
    tunable<&ClusterRowConfig::threads>("threads a block", {64, 128, 256, 512, 1024}),
    tunable<&ClusterRowConfig::cluster>("blocks that share a row", {2, 4, 8}),
    tunable<&ClusterRowConfig::vector>("elements a memory access", {1, 2, 4, 8}),
    tunable<&ClusterRowConfig::early_weights>("1: weights are loaded into registers ahead of the reduction",
                                              {0, 1}),
    tunable<&ClusterRowConfig::load_hint>("cache hint of loads: 0 normal, 2 streaming", {0, 2}),
    tunable<&ClusterRowConfig::store_hint>("cache hint of stores: 0 normal, 1 streaming", {0, 1}),
    programmatic_launch<&ClusterRowConfig::programmatic>(),
});

std::int64_t held_registers(const NormProblem& norm, const ClusterRowConfig& c) {
    const std::int64_t row =
        row_registers(norm.packets(c.threads * c.cluster, c.vector), c.vector, norm.element_bytes());
    const std::int64_t parameters = c.early_weights != 0 ? row * (norm.bias ? 2 : 1) : 0;
    return row + parameters + (norm.residual ? row : 0);
}

constexpr Constraint constraints[] = {
    vector_is_widest<ClusterRowConfig>,
    rule("at least half of the cluster's threads must own columns",
         [](const NormProblem& p, const ClusterRowConfig& c) {
             return c.threads * c.cluster * c.vector < 2 * p.hidden;
         }),
    rule("the row, weights and residuals that a thread holds must fit its registers",
         [](const NormProblem& p, const ClusterRowConfig& c) {
             return held_registers(p, c) <= register_budget(c.threads);
         }),
    rule("clusters pay for long rows or few of them",
         [](const NormProblem& p, const DeviceTraits& t) {
             return p.hidden * p.element_bytes() >= 16384 || p.rows * 2 <= t.sm_count;
         }),
};

/// Few long rows, or such as do not fit one block's registers: the smallest cluster that holds them.
std::optional<ClusterRowConfig> fallback(const NormProblem& norm, const DeviceTraits& traits) {
    ClusterRowConfig c;
    c.vector = widest_vector(norm.hidden, norm.element_bytes());
    c.programmatic = 1;
    if (is_for_clusters(norm, traits)) {
        c.cluster = blocks_of_few_rows;
        c.early_weights = 1;
        for (c.threads = 64; c.threads <= 512; c.threads *= 2) {
            const bool has_all = c.threads * c.cluster * c.vector >= norm.hidden || c.threads == 512;
            if (has_all && held_registers(norm, c) <= register_budget(c.threads)) return c;
        }
    }
    c.threads = 512;
    c.early_weights = 0;
    for (const std::int64_t size : {2, 4, 8}) {
        c.cluster = size;
        if (held_registers(norm, c) <= register_budget(c.threads)) return c;
    }
    return std::nullopt;
}

double predict(const NormProblem& norm, const ClusterRowConfig& c, const DeviceTraits& traits) {
    const double row_bytes = static_cast<double>(norm.read_bytes());
    const std::int64_t packets = norm.packets(c.threads * c.cluster, c.vector);
    return predict_us(norm,
                      {.blocks = norm.rows * c.cluster,
                       .threads = c.threads,
                       .held_registers = held_registers(norm, c),
                       .elements = static_cast<double>(packets * c.vector),
                       .work_factor = work_factor(norm),
                       .reducing_warps = static_cast<double>(c.threads) / 32,
                       .bytes_in_flight = row_bytes / static_cast<double>(c.cluster),
                       .latency_us = 0.24 * norm.reductions() + (c.early_weights != 0 ? 0.0 : 0.15),
                       .slowdown = (bound_by_memory(norm, traits) ? 1.02 : 1.0) *
                                   hint_factor(norm, c.load_hint != 0, c.store_hint != 0, traits),
                       .programmatic = c.programmatic != 0},
                      traits);
}

}  // namespace

Variant cluster_row(std::string_view source) {
    return {.name = "cluster_row",
            .summary =
                "a cluster of blocks holds a row in registers and reduces through distributed shared memory",
            .source = source,
            .min_arch = {9, 0, false},
            .tunables = tunables,
            .constraints = constraints,
            .kernels = cluster_row_kernels,
            .plan = typed<cluster_row_plan>,
            .fallback = typed<fallback>,
            .access_elements = typed<cluster_row_access_elements>,
            .predict_us = typed<predict>};
}

}  // namespace hone::norm
