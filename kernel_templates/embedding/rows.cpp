// Space and preference of both variants, which are one kernel: packets as wide as a row allows, and single
// elements for rows and strides that no packets fit.
#include <algorithm>
#include <cmath>

#include "kernel_templates/embedding/rows_plan.h"
#include "kernel_templates/kit/accesses.h"
#include "kernel_templates/kit/clock.h"
#include "kernel_templates/kit/rules.h"

namespace hone::embedding {
namespace {

constexpr auto threads = tunable<&RowsConfig::threads>("threads a block", {64, 128, 256, 512, 1024});
constexpr auto lanes =
    tunable<&RowsConfig::lanes>("threads that share a row", {8, 16, 32, 64, 128, 256, 512, 1024});
constexpr auto programmatic = tunable<&RowsConfig::programmatic>("1: programmatic dependent launch", {0, 1});

constexpr auto packet_tunables = tunables_of(
    {threads, lanes, tunable<&RowsConfig::vector>("elements a memory access", {1, 2, 4, 8}), programmatic});
constexpr auto element_tunables = tunables_of(
    {threads, lanes, tunable<&RowsConfig::vector>("elements a memory access", {1}), programmatic});

constexpr Constraint lanes_own_columns =
    rule("at least half of the lanes must own columns", [](const EmbeddingProblem& p, const RowsConfig& c) {
        return c.lanes == 8 || c.lanes * c.vector < 2 * p.hidden;
    });
constexpr Constraint packet_constraints[] = {
    lanes_fit_block<RowsConfig>,
    rule("accesses are the widest that divide hidden and fit 16 bytes, or half of that",
         [](const EmbeddingProblem& p, const RowsConfig& c) {
             return is_wide_access(p.hidden, p.element_bytes(), c.vector);
         }),
    lanes_own_columns,
    programmatic_needs_sm_90<RowsConfig>,
};
constexpr Constraint element_constraints[] = {lanes_fit_block<RowsConfig>, lanes_own_columns,
                                              programmatic_needs_sm_90<RowsConfig>};

/// Modelled microseconds: a launch, one look-up after the other, and bytes over bandwidth or packets over
/// issue slots, whichever takes longer.
double predict_us(const EmbeddingProblem& p, const RowsConfig& c, const DeviceTraits& traits) {
    const double rows = static_cast<double>(p.tokens);
    const double bytes = rows * static_cast<double>(p.hidden * p.element_bytes()) * (p.positions ? 3 : 2);
    const double memory_us = bytes / (0.86e-6 * traits.memory_bytes_per_s);

    const double packets = static_cast<double>(ceil_div(p.hidden, c.lanes * c.vector));
    const double lanes_per_us = 128 * busy_cycles_per_us(traits);
    const double slots =
        rows * static_cast<double>(c.lanes) * (40 + packets * (10 + 4 * static_cast<double>(c.vector)));
    const double busy = std::min<double>(traits.sm_count, std::ceil(slots / 1e4));
    const double issue_us = slots / (busy * lanes_per_us);

    const double rounds = std::ceil(packets / 8);
    const double launch_us = c.programmatic != 0 ? 0.29 : 0.69;
    return launch_us + 0.6 + 0.35 * (rounds - 1) + std::max(memory_us, issue_us);
}

std::int64_t access_elements(const EmbeddingProblem&, const RowsConfig& c) { return c.vector; }

/// A row's packets at once, in blocks of at least 128 threads.
RowsConfig in_one_round(const EmbeddingProblem& p, std::int64_t vector, const DeviceTraits& traits) {
    RowsConfig c{.lanes = 8, .vector = vector, .programmatic = traits.has_programmatic_launch() ? 1 : 0};
    while (c.lanes < 512 && c.lanes * c.vector < p.hidden) c.lanes *= 2;
    c.threads = std::max<std::int64_t>(c.lanes, 128);
    return c;
}
std::optional<RowsConfig> packet_fallback(const EmbeddingProblem& p, const DeviceTraits& traits) {
    return in_one_round(p, widest_vector(p.hidden, p.element_bytes()), traits);
}
std::optional<RowsConfig> element_fallback(const EmbeddingProblem& p, const DeviceTraits& traits) {
    return in_one_round(p, 1, traits);
}

}  // namespace

const Variant rows{.name = "rows",
                   .summary = "a few threads copy a token's row in packets",
                   .source = "embedding/rows.cu",
                   .tunables = packet_tunables,
                   .constraints = packet_constraints,
                   .kernels = rows_kernels,
                   .plan = typed<rows_plan>,
                   .fallback = typed<packet_fallback>,
                   .access_elements = typed<access_elements>,
                   .predict_us = typed<predict_us>};

const Variant plain{.name = "plain",
                    .summary = "a few threads copy a token's row element by element",
                    .source = "embedding/rows.cu",
                    .tunables = element_tunables,
                    .constraints = element_constraints,
                    .kernels = rows_kernels,
                    .plan = typed<rows_plan>,
                    .fallback = typed<element_fallback>,
                    .access_elements = typed<access_elements>,
                    .predict_us = typed<predict_us>};

}  // namespace hone::embedding
