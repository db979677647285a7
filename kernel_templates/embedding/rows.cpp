#include <algorithm>
#include <cmath>

#include "kernel_templates/embedding/rank.h"
#include "kernel_templates/embedding/rows_plan.h"
#include "kernel_templates/kit/ceil_div.h"
#include "kernel_templates/kit/rules.h"

namespace hone::embedding {
namespace {

constexpr auto tunables = tunables_of({
    tunable<&RowsConfig::threads>("threads a block", {64, 128, 256, 512, 1024}),
    tunable<&RowsConfig::lanes>("threads that share a row", {8, 16, 32, 64, 128, 256, 512, 1024}),
    tunable<&RowsConfig::vector>("elements a memory access", {1, 2, 4, 8}),
    tunable<&RowsConfig::programmatic>("1: programmatic dependent launch", {0, 1}),
});

/// Widest access in elements that fits 16 bytes and divides a row.
std::int64_t widest_vector(const EmbeddingProblem& p) {
    std::int64_t vector = 16 / p.element_bytes();
    while (p.hidden % vector != 0) vector /= 2;
    return vector;
}

constexpr Constraint constraints[] = {
    lanes_fit_block<RowsConfig>,
    rule("accesses are the widest that divide hidden and fit 16 bytes, or half of that",
         [](const EmbeddingProblem& p, const RowsConfig& c) {
             const std::int64_t widest = widest_vector(p);
             return c.vector == widest || (c.vector * 2 == widest && c.vector * p.element_bytes() >= 4);
         }),
    rule("at least half of the lanes must own columns",
         [](const EmbeddingProblem& p, const RowsConfig& c) {
             return c.lanes == 8 || c.lanes * c.vector < 2 * p.hidden;
         }),
    programmatic_needs_sm_90<RowsConfig>,
};

double predict(const EmbeddingProblem& p, const RowsConfig& c, const DeviceTraits& traits) {
    return predict_us(p,
                      {.packets = static_cast<double>(ceil_div(p.hidden, c.lanes * c.vector)),
                       .vector = static_cast<double>(c.vector),
                       .lanes = static_cast<double>(c.lanes),
                       .programmatic = c.programmatic != 0},
                      traits);
}

/// A row's packets at once, in blocks of at least 128 threads.
std::optional<RowsConfig> fallback(const EmbeddingProblem& p, const DeviceTraits& traits) {
    RowsConfig c{.vector = widest_vector(p), .programmatic = traits.has_programmatic_launch() ? 1 : 0};
    c.lanes = 8;
    while (c.lanes < 512 && c.lanes * c.vector < p.hidden) c.lanes *= 2;
    c.threads = std::max<std::int64_t>(c.lanes, 128);
    return c;
}

}  // namespace

const Variant rows{.name = "rows",
                   .summary = "a few threads copy a token's row in packets",
                   .source = "embedding/rows.cu",
                   .tunables = tunables,
                   .constraints = constraints,
                   .kernels = rows_kernels,
                   .plan = typed<rows_plan>,
                   .fallback = typed<fallback>,
                   .access_elements = typed<rows_access_elements>,
                   .predict_us = typed<predict>};

}  // namespace hone::embedding
