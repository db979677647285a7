// Embedding, all of the family that is not declared: space and preference of both variants, which are one
// kernel, packets as wide as a row allows, and single elements for rows and strides that no packets fit;
// rules, tolerance, work, and the reference's launch.
#include <algorithm>
#include <cmath>
#include <string>

#include "kernel_templates/embedding/calibration.h"
#include "kernel_templates/embedding/rows_plan.h"
#include "kernel_templates/kit/accesses.h"
#include "kernel_templates/kit/ceil_div.h"
#include "kernel_templates/kit/clock.h"
#include "kernel_templates/kit/launches.h"
#include "kernel_templates/kit/rules.h"

namespace hone {
namespace embedding {
namespace {

constexpr auto threads = tunable<&RowsConfig::threads>("threads a block", {64, 128, 256, 512, 1024});
constexpr auto lanes =
    tunable<&RowsConfig::lanes>("threads that share a row", {8, 16, 32, 64, 128, 256, 512, 1024});
constexpr auto programmatic = programmatic_launch<&RowsConfig::programmatic>();

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

namespace {

const Variant* const variants[] = {&rows, &plain};

std::string validate(const Problem& problem) {
    const EmbeddingProblem p(problem);
    if (p.tokens > (std::int64_t{1} << 38) / p.hidden) {
        return "tokens x hidden is " + std::to_string(p.tokens) + " x " + std::to_string(p.hidden) +
               "; allowed: at most 2^38 elements";
    }
    return {};
}

// One rounding to the result's type, plus that of the product in float32; a copy has no error.
Tolerance tolerance(const Problem& problem, int) {
    const EmbeddingProblem p(problem);
    if (!p.scale && !p.positions) return {.relative_l2 = 0, .max_abs = 0, .max_rel = 0};
    switch (p.dtype) {
        case Dtype::bf16: return {.relative_l2 = 3e-3, .max_abs = 1e-6, .max_rel = 0x1.1p-8};
        case Dtype::fp16: return {.relative_l2 = 4e-4, .max_abs = 1e-6, .max_rel = 0x1.1p-11};
        default: return {.relative_l2 = 1e-6, .max_abs = 1e-6, .max_rel = 1e-6};
    }
}

/// Rows that are read, and those that are written; indices are next to nothing.
Work work(const Problem& problem) {
    const EmbeddingProblem p(problem);
    const double elements = static_cast<double>(p.tokens) * static_cast<double>(p.hidden);
    const double copies = p.positions ? 3 : 2;
    const double indices = static_cast<double>(p.tokens * size_bytes(p.index_type())) * (p.positions ? 2 : 1);
    return {.bytes = copies * elements * static_cast<double>(p.element_bytes()) + indices,
            .flops = elements * ((p.scale ? 1 : 0) + (p.positions ? 1 : 0))};
}

constexpr Kernel reference_kernels[] = {{"embedding_reference", call_args}};

Plan reference_plan(const Problem& problem) {
    const EmbeddingProblem p(problem);
    return plan_of(launch(reference_kernels[0], grid_of(ceil_div(p.tokens * p.hidden, 256)), 256));
}

}  // namespace
}  // namespace embedding

extern const Family embedding_family;
const Family embedding_family = embedding::declared({
    .variants = embedding::variants,
    .validate = embedding::validate,
    .tolerance = embedding::tolerance,
    .work = embedding::work,
    .calibration = embedding::calibration,
    .reference_source = "embedding/reference.cu",
    .reference_kernels = embedding::reference_kernels,
    .reference_plan = embedding::reference_plan,
});

}  // namespace hone
